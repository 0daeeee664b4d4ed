//! `horchestra flight inspect`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use horchestra_wasm::Inspection;

/// What to inspect.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The module's file
    module: PathBuf,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// As one JSON object
    Json,
}

pub(crate) fn command(args: &Args) -> ExitCode {
    match inspected(args) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn inspected(args: &Args) -> Result<String, String> {
    let module = super::read(&args.module)?;
    let inspection =
        horchestra_wasm::inspect(&module).map_err(|e| format!("{}: {e}", args.module.display()))?;
    match args.output {
        Format::Text => Ok(text(&args.module.display().to_string(), &inspection)),
        Format::Json => {
            serde_json::to_string_pretty(&inspection).map(|json| json + "\n").map_err(|e| e.to_string())
        }
    }
}

fn text(name: &str, inspection: &Inspection) -> String {
    let mut text = format!("{name}\n");
    let mut line = |head: &str, rest: &str| _ = writeln!(text, "  {head:<10} {rest}");
    line("size", &format!("{} bytes, {} functions", inspection.size, inspection.functions));
    line("memory", &format!("{} KiB at the start", inspection.memory >> 10));
    line("sha256", &inspection.sha256);
    line("signed", if inspection.signed { "yes (not verified here)" } else { "no" });
    if !inspection.schematics.is_empty() {
        line("schematics", &inspection.schematics.join(", "));
    }
    for (name, size) in &inspection.custom_sections {
        line("section", &format!("{name} ({size} bytes)"));
    }
    for import in &inspection.imports {
        line("imports", &format!("{}.{} {}", import.module, import.name, import.ty));
    }
    for export in &inspection.exports {
        line("exports", &format!("{} {}", export.name, export.ty));
    }
    line("cluster", if inspection.looks_things_up() { "may read it" } else { "never reads it" });
    for verdict in &inspection.hosts {
        if verdict.runs() {
            line("runs on", &verdict.host);
        }
        for problem in &verdict.problems {
            line("not on", &format!("{}: {}", verdict.host, problem.replace('\n', "\n             ")));
        }
    }
    text
}
