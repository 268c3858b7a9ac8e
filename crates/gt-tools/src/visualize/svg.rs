//! A drawing as SVG.

use std::fmt::Write;

use super::layout::{Layout, Row};
use crate::timeline::{Colour, Party};

const FONT: &str = "DejaVu Sans, Verdana, sans-serif";

/// The text of an SVG file.
pub fn draw(layout: &Layout, title: &str) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(&mut out, layout, title);
    out
}

fn write_all(out: &mut String, layout: &Layout, title: &str) -> std::fmt::Result {
    let Layout { width, height, .. } = layout;
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="{FONT}" font-size="10">"#
    )?;
    writeln!(out, "<title>{}</title>", escape(title))?;
    writeln!(
        out,
        r#"<defs><marker id="tip" viewBox="0 0 6 6" refX="5.5" refY="3" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L6 3L0 6z" fill="{}"/></marker></defs>"#,
        css(Colour::Move)
    )?;
    writeln!(out, r##"<rect width="100%" height="100%" fill="#ffffff"/>"##)?;
    let (left, right) = layout.plot;
    writeln!(
        out,
        r##"<text x="16" y="20" font-size="13" fill="#202020">{}</text>"##,
        escape(title)
    )?;
    writeln!(out, r##"<text x="16" y="36" fill="#606060">{}</text>"##, escape(&layout.summary))?;
    rows(out, layout)?;
    let bottom = layout.rows.last().map_or(0.0, |row| row.y + row.height + 6.0);
    for (x, text) in &layout.ticks {
        writeln!(
            out,
            r##"<path d="M{x:.2} 46V{bottom:.2}" stroke="#e4e4e4" stroke-width="0.5"/><text x="{x:.2}" y="{:.2}" text-anchor="middle" fill="#606060">{}</text>"##,
            bottom + 12.0,
            escape(text)
        )?;
    }
    for bar in &layout.bars {
        writeln!(
            out,
            r#"<rect x="{:.2}" y="{:.2}" width="{:.2}" height="{:.2}" fill="{}"/>"#,
            bar.x,
            bar.y,
            bar.width,
            bar.height,
            css(bar.colour)
        )?;
    }
    for item in &layout.boxes {
        boxed(out, item)?;
    }
    for arrow in &layout.arrows {
        let ((x1, y1), (x2, y2)) = (arrow.from, arrow.to);
        writeln!(
            out,
            r#"<path d="M{x1:.2} {y1:.2}L{x2:.2} {y2:.2}" stroke="{}" stroke-width="0.9" stroke-opacity="0.75" fill="none" marker-end="url(#tip)"><title>{}</title></path>"#,
            css(Colour::Move),
            escape(&arrow.title)
        )?;
    }
    legend(out, layout, bottom + 34.0, (left, right))?;
    writeln!(out, "</svg>")
}

fn rows(out: &mut String, layout: &Layout) -> std::fmt::Result {
    let (left, right) = layout.plot;
    for row in &layout.rows {
        let Row { y, height, .. } = row;
        let shade = match row.part {
            Party::Client => "#f6f8fb",
            Party::Dispatcher => "#f4f4f2",
            Party::Worker => "#fafafa",
        };
        writeln!(
            out,
            r#"<rect x="{left:.2}" y="{y:.2}" width="{:.2}" height="{height:.2}" fill="{shade}"/>"#,
            right - left
        )?;
        // Lanes that are too low for two lines have the name alone, and the lowest none.
        let name: String = row.name.chars().take(24).collect();
        let middle = y + height / 2.0;
        if *height >= 22.0 {
            writeln!(
                out,
                r##"<text x="16" y="{:.2}" fill="#202020">{}</text><text x="16" y="{:.2}" font-size="8.5" fill="#707070">{}</text>"##,
                middle - 1.0,
                escape(&name),
                middle + 10.0,
                escape(&row.detail)
            )?;
        } else if *height >= 6.0 {
            let size = height.min(10.0);
            writeln!(
                out,
                r##"<text x="16" y="{:.2}" font-size="{size:.1}" fill="#202020">{}</text>"##,
                middle + size * 0.35,
                escape(&name)
            )?;
        }
    }
    Ok(())
}

fn boxed(out: &mut String, item: &super::layout::Box) -> std::fmt::Result {
    let super::layout::Box { x, y, width, height, .. } = item;
    let stroke = if item.failed { r##" stroke="#c00000" stroke-width="1.5""## } else { "" };
    // A little space, so that two that touch are two.
    let drawn = (width - 0.4).max(0.4);
    writeln!(
        out,
        r#"<rect x="{x:.2}" y="{y:.2}" width="{drawn:.2}" height="{height:.2}" fill="{}"{stroke}><title>{}</title></rect>"#,
        css(item.colour),
        escape(&item.title)
    )?;
    if let Some(label) = &item.label {
        writeln!(
            out,
            r#"<text x="{:.2}" y="{:.2}" text-anchor="middle" font-size="9" fill="{}">{}</text>"#,
            x + width / 2.0,
            y + height / 2.0 + 3.2,
            ink(item.colour),
            escape(label)
        )?;
    }
    Ok(())
}

fn legend(
    out: &mut String,
    layout: &Layout,
    mut y: f64,
    (left, right): (f64, f64),
) -> std::fmt::Result {
    let mut x = left;
    for (colour, seconds, count) in &layout.legend {
        let text = match (seconds, count) {
            (seconds, count) if *seconds > 0.0 => {
                format!("{} {:.1} ms, {count}", colour.name(), seconds * 1e3)
            }
            (_, count) => format!("{} {count}", colour.name()),
        };
        let wide = 26.0 + text.chars().count() as f64 * 5.8;
        if x + wide > right && x > left {
            (x, y) = (left, y + 15.0);
        }
        writeln!(
            out,
            r##"<rect x="{x:.2}" y="{:.2}" width="10" height="10" fill="{}"/><text x="{:.2}" y="{:.2}" fill="#404040">{}</text>"##,
            y - 8.5,
            css(*colour),
            x + 14.0,
            y,
            escape(&text)
        )?;
        x += wide;
    }
    Ok(())
}

fn css(colour: Colour) -> String {
    let [red, green, blue] = colour.rgb();
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Dark on light colours, light on dark ones.
fn ink(colour: Colour) -> &'static str {
    let [red, green, blue] = colour.rgb().map(f64::from);
    if 0.299 * red + 0.587 * green + 0.114 * blue > 140.0 { "#202020" } else { "#ffffff" }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // No other control character may stand in XML.
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}
