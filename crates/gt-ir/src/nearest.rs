//! The known word nearest to a misspelled one.

/// Returns the candidate with the smallest edit distance from `given`, if it is small enough.
pub fn nearest<'a>(given: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let (edits, candidate) = closest(given, candidates)?;
    (edits <= candidate.len() / 2).then_some(candidate)
}

/// Returns the candidate that `given` probably is, with a slip: a letter in five is wrong at most,
/// and not only digits, as `layer1` and `layer2` are both meant.
pub fn misspelled<'a>(given: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let (edits, candidate) = closest(given, candidates)?;
    let letters = |word: &str| word.replace(|letter: char| letter.is_ascii_digit(), "");
    let is_slip = edits <= candidate.len().div_ceil(5) && letters(given) != letters(candidate);
    is_slip.then_some(candidate)
}

/// Returns the candidate with the smallest edit distance from `given`, and the distance.
fn closest<'a>(given: &str, candidates: &[&'a str]) -> Option<(usize, &'a str)> {
    candidates.iter().map(|candidate| (distance(given, candidate), *candidate)).min()
}

/// Returns Levenshtein's distance: insertions, deletions and substitutions of characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let exchanged = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = exchanged.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_words_are_found() {
        let keys = ["shard", "backward", "compile"];
        assert_eq!(nearest("shrad", &keys), Some("shard"));
        assert_eq!(nearest("backwards", &keys), Some("backward"));
        assert_eq!(nearest("zebra", &keys), None);
    }

    #[test]
    fn a_slip_is_told_from_another_word() {
        assert_eq!(misspelled("row", &["rows", "layer1"]), Some("rows"));
        assert_eq!(misspelled("attnetion", &["attention"]), Some("attention"));
        assert_eq!(misspelled("atention", &["attention"]), Some("attention"));
        assert_eq!(misspelled("cols", &["rows"]), None);
        assert_eq!(misspelled("layer2", &["layer1"]), None);
    }
}
