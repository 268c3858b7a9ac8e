//! The known word nearest to a misspelled one.

/// Returns the candidate with the smallest edit distance from `given`, if it is small enough.
pub fn nearest<'a>(given: &str, candidates: &[&'a str]) -> Option<&'a str> {
    candidates
        .iter()
        .map(|candidate| (distance(given, candidate), *candidate))
        .filter(|(edits, candidate)| *edits <= candidate.len() / 2)
        .min()
        .map(|(_, candidate)| candidate)
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
}
