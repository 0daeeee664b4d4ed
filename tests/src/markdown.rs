//! The project's documents, as far as tests look at them.

use std::path::PathBuf;

use crate::root;

/// A document.
#[derive(Debug)]
pub struct Markdown {
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

impl Markdown {
    /// Reads one; `path` is relative to the root of the checkout.
    ///
    /// # Panics
    /// Where it cannot be read.
    pub fn read(path: &str) -> Self {
        let path = root().join(path);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self { path, text }
    }

    /// The first block of code in a language.
    ///
    /// # Panics
    /// Where there is none.
    pub fn code(&self, language: &str) -> String {
        let start = format!("```{language}\n");
        let found = self.text.split(&start).nth(1).and_then(|rest| rest.split("\n```").next());
        found.map(str::to_owned).unwrap_or_else(|| panic!("{} has no {language}", self.path.display()))
    }

    /// The first block of code in a language as a reader sees it: without the lines that only
    /// rustdoc reads.
    pub fn shown_code(&self, language: &str) -> String {
        let code = self.code(language);
        let shown = code.lines().filter(|line| *line != "#" && !line.starts_with("# "));
        shown.collect::<Vec<_>>().join("\n")
    }

    /// What its links lead to, outside code.
    pub fn links(&self) -> Vec<String> {
        let mut links = Vec::new();
        for prose in self.text.split("```").step_by(2) {
            for target in prose.split("](").skip(1) {
                links.extend(target.split(')').next().map(str::to_owned));
            }
        }
        links
    }
}

/// All documents that people read first: those at the root, the book, and the decisions.
///
/// # Panics
/// Where a directory cannot be read.
pub fn documents() -> Vec<Markdown> {
    let mut found = Vec::new();
    for directory in ["", "book/src", "docs/decisions"] {
        let entries = std::fs::read_dir(root().join(directory)).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names.retain(|name| name.ends_with(".md"));
        found.extend(names.iter().map(|name| {
            Markdown::read(&format!("{directory}/{name}").replacen(
                '/',
                "",
                usize::from(directory.is_empty()),
            ))
        }));
    }
    found
}
