//! Why a selector was refused.

/// Why a selector was refused: what was found, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectorError {
    /// The text does not follow the grammar.
    #[error("unable to parse requirement: {0}")]
    Syntax(String),
    /// A key, a value or their combination breaks a rule.
    #[error("{field}: Invalid value: {value:?}: {detail}")]
    Invalid {
        /// `key`, or `values[0][KEY]`, or the field of the JSON form.
        field: String,
        /// What was found.
        value: String,
        /// What would be right.
        detail: String,
    },
    /// The selector is larger than the limits.
    #[error("the selector is too large: {0}")]
    TooLarge(String),
}

impl SelectorError {
    pub(super) fn invalid(
        field: impl Into<String>,
        value: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self::Invalid { field: field.into(), value: value.into(), detail: detail.into() }
    }
}
