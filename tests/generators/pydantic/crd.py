import json

from pydantic import BaseModel, ConfigDict
from pydantic.json_schema import GenerateJsonSchema


class Git(BaseModel):
    url: str


class Image(BaseModel):
    ref: str


class Source(BaseModel):
    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["git"]}, {"required": ["image"]}]})

    git: Git | None = None
    image: Image | None = None


class AppSpec(BaseModel):
    source: Source


class Structural(GenerateJsonSchema):
    """Writes a field that may be None as one that may be absent."""

    def nullable_schema(self, schema):
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema):
        if schema.get("default") is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def field_title_should_be_set(self, schema):
        return False


def inlined(schema, definitions):
    """Returns a schema with each definition in the place of the reference to it."""
    if isinstance(schema, list):
        return [inlined(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return {**inlined(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions), **rest}
    return {key: inlined(value, definitions) for key, value in schema.items() if key != "$defs"}


spec = AppSpec.model_json_schema(schema_generator=Structural)
spec = inlined(spec, spec.get("$defs", {}))
crd = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "apps.generators.example.com"},
    "spec": {
        "group": "generators.example.com",
        "names": {"kind": "App", "plural": "apps", "singular": "app"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {"spec": spec}}},
            }
        ],
    },
}
print(json.dumps(crd, indent=2))
