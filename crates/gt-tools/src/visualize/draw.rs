//! Draws a drawing on a canvas.

use super::canvas::{Area, Canvas, Rgb, Style};
use super::layout::{Box, Drawing, DrawnRow};
use crate::timeline::{Colour, Party};

const DARK: Rgb = [0x20; 3];
const TICK: Rgb = [0xe4; 3];
const TICK_TEXT: Rgb = [0x60; 3];
const DETAIL: Rgb = [0x70; 3];
const LEGEND: Rgb = [0x40; 3];
const FAILED: Rgb = [0xc0, 0, 0];

/// Draws a drawing below its title.
pub fn draw(canvas: &mut impl Canvas, layout: &Drawing, title: &str) {
    let whole = Area { x: 0.0, y: 0.0, width: layout.width, height: layout.height };
    canvas.rectangle(whole, [0xff; 3], None);
    canvas.text((16.0, 20.0), Style::ink(DARK).size(13.0), title);
    canvas.text((16.0, 36.0), Style::ink(TICK_TEXT), &layout.summary);
    layout.rows.iter().for_each(|row| draw_row(canvas, row, layout.plot));
    let bottom = layout.rows.last().map_or(0.0, |row| row.y + row.height + 6.0);
    for (x, text) in &layout.ticks {
        canvas.line((*x, 46.0), (*x, bottom), TICK);
        canvas.text((*x, bottom + 12.0), Style::ink(TICK_TEXT).centred(), text);
    }
    for bar in &layout.bars {
        let area = Area { x: bar.x, y: bar.y, width: bar.width, height: bar.height };
        canvas.rectangle(area, bar.colour.rgb(), None);
    }
    layout.boxes.iter().for_each(|item| draw_box(canvas, item));
    for arrow in &layout.arrows {
        canvas.arrow(arrow.from, arrow.to, Colour::Move.rgb(), &arrow.title);
    }
    draw_legend(canvas, layout, bottom + 34.0);
}

fn draw_row(canvas: &mut impl Canvas, row: &DrawnRow, (left, right): (f64, f64)) {
    let shade = match row.part {
        Party::Client => [0xf6, 0xf8, 0xfb],
        Party::Dispatcher => [0xf4, 0xf4, 0xf2],
        Party::Worker => [0xfa; 3],
    };
    let DrawnRow { y, height, .. } = *row;
    canvas.rectangle(Area { x: left, y, width: right - left, height }, shade, None);
    // Rows that are too low for two lines show the name alone, and the lowest show none.
    let name: String = row.name.chars().take(24).collect();
    let middle = y + height / 2.0;
    if height >= 22.0 {
        canvas.text((16.0, middle - 1.0), Style::ink(DARK), &name);
        canvas.text((16.0, middle + 10.0), Style::ink(DETAIL).size(8.5), &row.detail);
    } else if height >= 6.0 {
        let size = height.min(10.0);
        canvas.text((16.0, middle + size * 0.35), Style::ink(DARK).size(size), &name);
    }
}

fn draw_box(canvas: &mut impl Canvas, item: &Box) {
    let Box { x, y, width, height, .. } = *item;
    // A small gap separates adjacent boxes.
    let area = Area { x, y, width: (width - 0.4).max(0.4), height };
    canvas.rectangle(area, item.colour.rgb(), Some(&item.title));
    if item.failed {
        canvas.outline(area, FAILED, 1.5);
    }
    if let Some(label) = &item.label {
        let at = (x + width / 2.0, y + height / 2.0 + 3.2);
        canvas.text(at, Style::ink(ink_on(item.colour)).size(9.0).centred(), label);
    }
}

fn draw_legend(canvas: &mut impl Canvas, layout: &Drawing, mut y: f64) {
    let (left, right) = layout.plot;
    let mut x = left;
    for (colour, seconds, count) in &layout.legend {
        let text = if *seconds > 0.0 {
            format!("{} {:.1} ms, {count}", colour.name(), seconds * 1e3)
        } else {
            format!("{} {count}", colour.name())
        };
        let width = 26.0 + text.chars().count() as f64 * 5.8;
        if x + width > right && x > left {
            (x, y) = (left, y + 15.0);
        }
        let area = Area { x, y: y - 8.5, width: 10.0, height: 10.0 };
        canvas.rectangle(area, colour.rgb(), None);
        canvas.text((x + 14.0, y), Style::ink(LEGEND), &text);
        x += width;
    }
}

/// Dark on light colours, light on dark ones.
fn ink_on(colour: Colour) -> Rgb {
    let [red, green, blue] = colour.rgb().map(f64::from);
    if 0.299 * red + 0.587 * green + 0.114 * blue > 140.0 { DARK } else { [0xff; 3] }
}
