//! The files of the page, which are a part of the program: it needs no network and no folder.

use axum::http::header;
use axum::response::{IntoResponse, Response};

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

macro_rules! files {
    ($($kind:ident $name:literal),* $(,)?) => {
        [$(($name, $kind, include_bytes!(concat!("../page/", $name)))),*]
    };
}

/// Each file with its type and content.
const FILES: &[(&str, &str, &[u8])] = &files![
    HTML "index.html",
    STYLE "style.css",
    SCRIPT "main.js",
    SCRIPT "actions.js",
    SCRIPT "ask.js",
    SCRIPT "live.js",
    SCRIPT "history.js",
    SCRIPT "chart.js",
    SCRIPT "details.js",
    SCRIPT "mesh.js",
    SCRIPT "observe.js",
    SCRIPT "elements.js",
    SCRIPT "words.js",
    SCRIPT "views/mine.js",
    SCRIPT "views/workers.js",
    SCRIPT "views/sessions.js",
    SCRIPT "views/session.js",
    SCRIPT "views/inside.js",
    SCRIPT "views/hot.js",
    SCRIPT "views/users.js",
    SCRIPT "views/published.js",
    SCRIPT "views/moves.js",
    SCRIPT "views/failures.js",
    SCRIPT "views/hour.js",
    SCRIPT "views/timeline.js",
    SCRIPT "timeline/describe.js",
    SCRIPT "timeline/draw.js",
    SCRIPT "timeline/gestures.js",
    SCRIPT "timeline/lanes.js",
    SCRIPT "timeline/overview.js",
    SCRIPT "timeline/pick.js",
    SCRIPT "timeline/range.js",
    SCRIPT "timeline/record.js",
    SCRIPT "timeline/recording.js",
    SCRIPT "timeline/row-index.js",
    SCRIPT "vendor/uplot/uPlot.esm.js",
    STYLE "vendor/uplot/uPlot.min.css",
];

/// What strangers get, too: how to sign in, and nothing about GT.
const PUBLIC: &[(&str, &str, &[u8])] = &files![
    SCRIPT "sign-in.js",
    SCRIPT "exchange.js",
    ICON "icon.svg",
];

const ICON: &str = "image/svg+xml";
const SIGN_IN: &str = include_str!("../page/sign-in.html");

/// Returns whether strangers may read a path.
pub fn is_public(path: &str) -> bool {
    PUBLIC.iter().any(|(name, ..)| path.strip_prefix('/') == Some(name))
}

/// Returns the page that asks for the token.
pub fn sign_in() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, HTML)], SIGN_IN)
}

/// Returns the file at a path, if there is one.
pub fn file(path: &str) -> Option<Response> {
    let wanted = match path.strip_prefix('/')? {
        "" => "index.html",
        name => name,
    };
    let (_, kind, content) = FILES.iter().chain(PUBLIC).find(|(name, ..)| *name == wanted)?;
    Some(([(header::CONTENT_TYPE, *kind)], *content).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_load_is_small() {
        let bytes: usize = FILES.iter().chain(PUBLIC).map(|(_, _, content)| content.len()).sum();
        assert!(bytes < 300_000, "{bytes}");
    }

    #[test]
    fn no_file_needs_a_network_or_has_code_in_markup() {
        for (name, kind, content) in FILES.iter().chain(PUBLIC) {
            let text = std::str::from_utf8(content).unwrap();
            if name.starts_with("vendor/") {
                continue;
            }
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for word in ["http:", "https:", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval("]
            {
                assert!(!text.contains(word), "{name}: {word}");
            }
            if *kind == HTML {
                for word in [" style=", "<style", " onclick=", "<script>"] {
                    assert!(!text.contains(word), "{name}: {word}");
                }
            }
        }
    }
}
