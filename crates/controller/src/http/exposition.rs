//! The metrics of several parts as one text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A metric family: its description, and its samples.
#[derive(Default)]
struct Family {
    description: Vec<String>,
    samples: Vec<String>,
}

/// Joins OpenMetrics texts. A family may stand in several of them (two runtimes count the same
/// things about different controllers); in one text it may stand only once.
/// Source: the OpenMetrics specification 1.0, "MetricFamily".
pub(super) fn merge(texts: impl IntoIterator<Item = String>) -> String {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for text in texts {
        let mut name = String::new();
        let mut first = false;
        for line in text.lines().filter(|line| *line != "# EOF") {
            let mut words = line.split(' ');
            let described = (words.next() == Some("#")).then(|| (words.next(), words.next()));
            if let Some((Some("HELP" | "TYPE" | "UNIT"), Some(of))) = described {
                if of != name {
                    name = of.to_owned();
                    first = !families.contains_key(&name);
                }
                let family = families.entry(name.clone()).or_default();
                if first {
                    family.description.push(line.to_owned());
                }
            } else {
                families.entry(name.clone()).or_default().samples.push(line.to_owned());
            }
        }
    }
    let mut out = String::new();
    for line in families.values().flat_map(|f| f.description.iter().chain(&f.samples)) {
        let _ = writeln!(out, "{line}");
    }
    out.push_str("# EOF\n");
    out
}

#[cfg(test)]
mod tests {
    use super::merge;

    #[test]
    fn a_family_stands_once_with_the_samples_of_all() {
        let one = "# HELP runs Runs.\n# TYPE runs counter\nruns_total{controller=\"a\"} 1\n# EOF\n";
        let two = "# HELP runs Runs.\n# TYPE runs counter\nruns_total{controller=\"b\"} 2\n\
                   # HELP depth Depth.\n# TYPE depth gauge\ndepth 3\n# EOF\n";
        let all = "# HELP depth Depth.\n# TYPE depth gauge\ndepth 3\n\
                   # HELP runs Runs.\n# TYPE runs counter\nruns_total{controller=\"a\"} 1\nruns_total{controller=\"b\"} 2\n# EOF\n";
        assert_eq!(merge([one.to_owned(), two.to_owned()]), all);
    }
}
