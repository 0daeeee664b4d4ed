//! The grammar of label selectors in a query string.

use super::error::SelectorError;
use super::label::{MAX_LENGTH, MAX_REQUIREMENTS, MAX_VALUES, Operator, Requirement};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token<'a> {
    End,
    Comma,
    Open,
    Close,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    Word(&'a str),
}

impl Token<'_> {
    fn text(&self) -> &str {
        match self {
            Self::End => "",
            Self::Comma => ",",
            Self::Open => "(",
            Self::Close => ")",
            Self::Not => "!",
            Self::Equals => "=",
            Self::DoubleEquals => "==",
            Self::NotEquals => "!=",
            Self::Greater => ">",
            Self::Less => "<",
            Self::Word(word) => word,
        }
    }
}

/// Reads a list of requirements. The empty text has none.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    if text.len() > MAX_LENGTH {
        return Err(SelectorError::TooLarge(format!("{} bytes, at most {MAX_LENGTH}", text.len())));
    }
    let mut parser = Parser { rest: text };
    let mut requirements = Vec::new();
    if parser.peek() == Token::End {
        return Ok(requirements);
    }
    loop {
        requirements.push(parser.requirement()?);
        if requirements.len() > MAX_REQUIREMENTS {
            return Err(SelectorError::TooLarge(format!("more than {MAX_REQUIREMENTS} requirements")));
        }
        match parser.next() {
            Token::End => return Ok(requirements),
            Token::Comma => match parser.peek() {
                Token::Word(_) | Token::Not => {}
                other => return Err(expected(&other, "identifier after ','")),
            },
            other => return Err(expected(&other, "',' or 'end of string'")),
        }
    }
}

fn expected(found: &Token<'_>, expected: &str) -> SelectorError {
    SelectorError::Syntax(format!("found '{}', expected: {expected}", found.text()))
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn split(&self) -> (Token<'a>, &'a str) {
        let rest = self.rest.trim_start_matches(is_space);
        for (symbol, token) in [
            ("==", Token::DoubleEquals),
            ("!=", Token::NotEquals),
            ("=", Token::Equals),
            ("!", Token::Not),
            (",", Token::Comma),
            ("(", Token::Open),
            (")", Token::Close),
            (">", Token::Greater),
            ("<", Token::Less),
        ] {
            if let Some(after) = rest.strip_prefix(symbol) {
                return (token, after);
            }
        }
        let special = |c: char| is_space(c) || matches!(c, '=' | '!' | ',' | '(' | ')' | '>' | '<');
        let (word, after) = rest.split_at(rest.find(special).unwrap_or(rest.len()));
        if word.is_empty() { (Token::End, after) } else { (Token::Word(word), after) }
    }

    fn peek(&self) -> Token<'a> {
        self.split().0
    }

    fn next(&mut self) -> Token<'a> {
        let (token, after) = self.split();
        self.rest = after;
        token
    }

    fn word(&mut self) -> Result<&'a str, SelectorError> {
        match self.next() {
            Token::Word(word) => Ok(word),
            other => Err(expected(&other, "identifier")),
        }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        if self.peek() == Token::Not {
            self.next();
            let key = self.word()?;
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        let key = self.word()?;
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let (operator, values) = match self.next() {
            Token::Equals | Token::DoubleEquals => (Operator::In, vec![self.exact_value()?]),
            Token::NotEquals => (Operator::NotIn, vec![self.exact_value()?]),
            Token::Greater => (Operator::GreaterThan, vec![self.exact_value()?]),
            Token::Less => (Operator::LessThan, vec![self.exact_value()?]),
            Token::Word("in") => (Operator::In, self.values()?),
            Token::Word("notin") => (Operator::NotIn, self.values()?),
            other => return Err(expected(&other, "in, notin, =, ==, !=, gt, lt")),
        };
        Requirement::new(key, operator, values)
    }

    /// `a` in `x=a`; nothing stands for the empty value.
    fn exact_value(&mut self) -> Result<String, SelectorError> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok(String::new());
        }
        Ok(self.word()?.to_owned())
    }

    /// `(a, b)`. A comma with nothing beside it stands for the empty value.
    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        match self.next() {
            Token::Open => {}
            other => return Err(expected(&other, "'('")),
        }
        let mut values = Vec::new();
        if self.peek() == Token::Close {
            self.next();
            return Ok(values);
        }
        loop {
            let value = match self.peek() {
                Token::Word(word) => {
                    self.next();
                    word
                }
                Token::Comma | Token::Close => "",
                other => return Err(expected(&other, "',', ')' or identifier")),
            };
            values.push(value.to_owned());
            if values.len() > MAX_VALUES {
                return Err(SelectorError::TooLarge(format!("more than {MAX_VALUES} values")));
            }
            match self.next() {
                Token::Comma => {}
                Token::Close => return Ok(values),
                other => return Err(expected(&other, "',' or ')'")),
            }
        }
    }
}

const fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}
