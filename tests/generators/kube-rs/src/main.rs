use kube::{CustomResource, CustomResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "generators.example.com", version = "v1", kind = "App", namespaced)]
struct AppSpec {
    source: Source,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Source {
    Git(Git),
    Image(Image),
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Git {
    url: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Image {
    #[serde(rename = "ref")]
    reference: String,
}

fn main() -> Result<(), serde_json::Error> {
    serde_json::to_writer_pretty(std::io::stdout(), &App::crd())?;
    println!();
    Ok(())
}
