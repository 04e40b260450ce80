import { z } from "zod";

const Source = z
  .object({
    git: z.object({ url: z.string() }).optional(),
    image: z.object({ ref: z.string() }).optional(),
  })
  .meta({ oneOf: [{ required: ["git"] }, { required: ["image"] }] });

const AppSpec = z.object({ source: Source });
export type AppSpec = z.infer<typeof AppSpec>;

// `input` has no `additionalProperties: false`, which an API server refuses beside properties.
const { $schema: _, ...spec } = z.toJSONSchema(AppSpec, { target: "openapi-3.0", io: "input" });
const crd = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "apps.generators.example.com" },
  spec: {
    group: "generators.example.com",
    names: { kind: "App", plural: "apps", singular: "app" },
    scope: "Namespaced",
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", required: ["spec"], properties: { spec } } },
      },
    ],
  },
};
console.log(JSON.stringify(crd, null, 2));
