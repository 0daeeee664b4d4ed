//! `horchestra-bindgen MODULE DIRECTORY`: writes a module with its JavaScript for Node.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, directory] = arguments.as_slice() else {
        return Err("usage: horchestra-bindgen MODULE DIRECTORY".into());
    };
    let mut bindgen = wasm_bindgen_cli_support::Bindgen::new();
    bindgen.input_path(module).nodejs(true)?.typescript(true).generate(directory)?;
    Ok(())
}
