//! Draws timelines.
//!
//! - [`layout`]: positions of boxes and texts; spans that are too narrow are merged.
//! - [`draw`]: the drawing, on a [`canvas`]: [`svg`] is text, [`png`] pixels.
//! - [`perfetto`]: the events for https://ui.perfetto.dev and chrome://tracing.

mod canvas;
mod draw;
mod layout;
pub mod perfetto;
mod png;
mod svg;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::ToolError;
use crate::timeline::{Timeline, read};

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Png,
    Svg,
    /// Chrome's trace events, as JSON.
    Perfetto,
}

impl Format {
    /// Returns the format with this name, or by the ending of the output's name.
    ///
    /// # Errors
    /// The name or the ending is not that of a format.
    pub fn find(name: Option<&str>, output: &Path) -> Result<Format, ToolError> {
        let ending = output.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        match (name, ending.as_deref()) {
            (Some("png"), _) | (None, Some("png")) => Ok(Format::Png),
            (Some("svg"), _) | (None, Some("svg")) => Ok(Format::Svg),
            (Some("perfetto"), _) | (None, Some("json")) => Ok(Format::Perfetto),
            (Some(other), _) => Err(ToolError::BadOption(format!(
                "'{other}' is no format, expected png, svg or perfetto"
            ))),
            (None, _) => Err(ToolError::BadOption(format!(
                "{}: the name tells no format, expected .png, .svg or .json\n  hint: give --format png, svg or perfetto",
                output.display()
            ))),
        }
    }
}

/// The size of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// Inches.
    pub width: f64,
    pub height: f64,
    /// Pixels an inch.
    pub dpi: f64,
}

impl Size {
    /// The most pixels on a side.
    const MOST: f64 = 20_000.0;

    /// # Errors
    /// A number is not positive, or the picture would be too large.
    fn check(self) -> Result<(), ToolError> {
        for (name, value) in [("width", self.width), ("height", self.height), ("dpi", self.dpi)] {
            if !(value > 0.0 && value.is_finite()) {
                let text = format!("--{name} is {value}, expected a number above 0");
                return Err(ToolError::BadOption(text));
            }
        }
        let (width, height) = (self.width * self.dpi, self.height * self.dpi);
        if width.max(height) > Size::MOST || width.min(height) < 1.0 {
            return Err(ToolError::BadOption(format!(
                "the picture would have {width:.0} x {height:.0} pixels, expected 1 to {} a side",
                Size::MOST
            )));
        }
        Ok(())
    }
}

/// A summary of a drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    pub rows: usize,
    pub events: usize,
    pub moves: usize,
    pub seconds: f64,
    /// Whether the log's last line was incomplete.
    pub cut_off: bool,
}

/// Draws a log into a file.
///
/// # Errors
/// The log is invalid, the size is impossible, or the file cannot be written.
pub fn visualize(
    log: &Path,
    output: &Path,
    format: Format,
    size: Size,
) -> Result<Drawn, ToolError> {
    size.check()?;
    let timeline = read(log)?;
    let failed = ToolError::file("writing", output);
    if is_same(log, output) {
        let text = format!("{} is the log itself: name another output", output.display());
        return Err(ToolError::BadOption(text));
    }
    // The previous file stays until the new one is complete. Links are followed.
    let output = &fs::canonicalize(output).unwrap_or_else(|_| output.to_path_buf());
    let is_plain = fs::metadata(output).map_or(true, |there| there.is_file());
    let made = if is_plain { beside(output) } else { output.clone() };
    let mut file = BufWriter::new(File::create(&made).map_err(&failed)?);
    let title = log.file_name().map(|name| name.to_string_lossy().into_owned());
    let title = title.unwrap_or_default();
    let written = match format {
        Format::Svg => {
            let layout = layout::lay_out(&timeline, size);
            let mut svg = svg::Svg::new(layout.width, layout.height, &title);
            draw::draw(&mut svg, &layout, &title);
            file.write_all(svg.finish().as_bytes())
        }
        Format::Png => png::Png::new(size).and_then(|mut png| {
            draw::draw(&mut png, &layout::lay_out(&timeline, size), &title);
            file.write_all(&png.finish()?)
        }),
        Format::Perfetto => perfetto::write(&timeline, &mut file),
    };
    let written = written.and_then(|()| file.flush());
    let written = written.and_then(|()| if is_plain { fs::rename(&made, output) } else { Ok(()) });
    if written.is_err() && is_plain {
        let _ = fs::remove_file(&made);
    }
    written.map_err(&failed)?;
    Ok(drawn(&timeline))
}

fn is_same(one: &Path, other: &Path) -> bool {
    let file = |path| fs::metadata(path).map(|there| (there.dev(), there.ino())).ok();
    file(one).is_some_and(|one| file(other) == Some(one))
}

/// Returns a temporary name.
fn beside(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    PathBuf::from(name)
}

fn drawn(timeline: &Timeline) -> Drawn {
    let (begin, end) = timeline.extent();
    Drawn {
        rows: timeline.rows.len(),
        events: timeline.spans.len(),
        moves: timeline.moves.len(),
        seconds: end - begin,
        cut_off: timeline.cut_off,
    }
}
