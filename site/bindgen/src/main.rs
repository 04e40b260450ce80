//! Writes the JavaScript and the final module of a WebAssembly library: `bindgen MODULE FOLDER NAME`.

use anyhow::{Context, bail};
use std::path::Path;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, folder, name] = arguments.as_slice() else { bail!("usage: bindgen MODULE FOLDER NAME") };
    let mut bindgen = Bindgen::new();
    bindgen.web(true)?.typescript(true).out_name(name).input_path(module);
    bindgen.generate(Path::new(folder)).with_context(|| format!("cannot convert `{module}`"))
}
