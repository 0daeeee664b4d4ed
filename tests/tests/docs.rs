//! The documents: what they link to is there, and they are of no machine in particular.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use horchestra_tests::{Markdown, documents, root};

#[test]
fn every_link_leads_somewhere() {
    let mut checked = 0;
    for document in documents() {
        let directory = document.path.parent().unwrap();
        for link in document.links() {
            if link.contains("://") || link.starts_with('#') {
                continue;
            }
            let path = directory.join(link.split('#').next().unwrap());
            assert!(path.exists(), "{} links to {link}, which is not there", document.path.display());
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked} links were found; is this test looking at the documents?");
}

#[test]
fn no_document_names_a_machine() {
    for document in documents() {
        for path in ["home", "root", "work", "tmp", "Users"].map(|name| format!("/{name}/")) {
            assert!(!document.text.contains(&path), "{} has {path}", document.path.display());
        }
    }
}

#[test]
fn the_book_has_every_chapter_in_its_summary() {
    let summary = Markdown::read("book/src/SUMMARY.md").links();
    for entry in std::fs::read_dir(root().join("book/src")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(name == "SUMMARY.md" || summary.contains(&name), "{name} is not in the summary");
    }
}

#[test]
fn every_decision_is_listed_and_short() {
    let list = Markdown::read("docs/decisions/README.md").links();
    for document in documents().iter().filter(|d| d.path.starts_with(root().join("docs/decisions"))) {
        let name = document.path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name == "README.md" || list.contains(&name), "{name} is not listed");
        assert!(document.text.lines().count() <= 30, "{name} is long for a decision");
    }
}
