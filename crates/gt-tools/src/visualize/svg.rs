//! A drawing as SVG.

use std::fmt::Write;

use super::canvas::{Area, Canvas, Rgb, Style};
use crate::timeline::Colour;

const FONT: &str = "DejaVu Sans, Verdana, sans-serif";

/// The text of an SVG file.
pub struct Svg {
    text: String,
}

impl Svg {
    /// Returns an empty picture of this width and height in points, with a title.
    pub fn new(width: f64, height: f64, title: &str) -> Svg {
        let mut svg = Svg { text: String::new() };
        svg.add(format_args!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="{FONT}" font-size="10">"#
        ));
        svg.add(format_args!("<title>{}</title>", escape(title)));
        svg.add(format_args!(
            r#"<defs><marker id="tip" viewBox="0 0 6 6" refX="5.5" refY="3" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L6 3L0 6z" fill="{}"/></marker></defs>"#,
            css(Colour::Move.rgb())
        ));
        svg
    }

    /// Returns the text of the whole file.
    pub fn finish(mut self) -> String {
        self.add(format_args!("</svg>"));
        self.text
    }

    fn add(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}");
    }
}

impl Canvas for Svg {
    fn rectangle(&mut self, area: Area, fill: Rgb, title: Option<&str>) {
        let (rectangle, fill) = (attributes(area), css(fill));
        match title {
            None => self.add(format_args!(r#"<rect {rectangle} fill="{fill}"/>"#)),
            Some(title) => {
                let title = escape(title);
                self.add(format_args!(
                    r#"<rect {rectangle} fill="{fill}"><title>{title}</title></rect>"#
                ));
            }
        }
    }

    fn outline(&mut self, area: Area, ink: Rgb, width: f64) {
        let (rectangle, ink) = (attributes(area), css(ink));
        self.add(format_args!(
            r#"<rect {rectangle} fill="none" stroke="{ink}" stroke-width="{width}"/>"#
        ));
    }

    fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), ink: Rgb) {
        let ink = css(ink);
        self.add(format_args!(
            r#"<path d="M{x1:.2} {y1:.2}L{x2:.2} {y2:.2}" stroke="{ink}" stroke-width="0.5"/>"#
        ));
    }

    fn arrow(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), ink: Rgb, title: &str) {
        let (ink, title) = (css(ink), escape(title));
        self.add(format_args!(
            r#"<path d="M{x1:.2} {y1:.2}L{x2:.2} {y2:.2}" stroke="{ink}" stroke-width="0.9" stroke-opacity="0.75" fill="none" marker-end="url(#tip)"><title>{title}</title></path>"#
        ));
    }

    fn text(&mut self, (x, y): (f64, f64), style: Style, text: &str) {
        let anchor = if style.is_centred { r#" text-anchor="middle""# } else { "" };
        let (size, ink, text) = (style.size, css(style.ink), escape(text));
        self.add(format_args!(
            r#"<text x="{x:.2}" y="{y:.2}"{anchor} font-size="{size:.1}" fill="{ink}">{text}</text>"#
        ));
    }
}

fn attributes(area: Area) -> String {
    let Area { x, y, width, height } = area;
    format!(r#"x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{height:.2}""#)
}

fn css([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML allows no other control characters.
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}
