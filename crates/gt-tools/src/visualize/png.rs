//! A drawing as pixels.

use std::io::{Error, Result};

use tiny_skia::{Color, FillRule, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, Transform};
use ttf_parser::{Face, OutlineBuilder};

use super::Size;
use super::canvas::{Area, Canvas, Rgb, Style};
use super::layout::POINTS;

/// The font is part of the program: a server may have none.
const FONT: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");

/// A picture in memory.
pub struct Png {
    pixels: Pixmap,
    face: Face<'static>,
    /// From points to pixels.
    scale: Transform,
}

impl Png {
    /// Returns an empty picture.
    ///
    /// # Errors
    /// Memory for a picture of this size cannot be allocated.
    pub fn new(size: Size) -> Result<Png> {
        let (width, height) = ((size.width * size.dpi) as u32, (size.height * size.dpi) as u32);
        let pixels = Pixmap::new(width.max(1), height.max(1))
            .ok_or_else(|| Error::other("a picture of this size cannot be made"))?;
        let scale = (size.dpi / POINTS) as f32;
        let face = Face::parse(FONT, 0).map_err(Error::other)?;
        Ok(Png { pixels, face, scale: Transform::from_scale(scale, scale) })
    }

    /// Returns the bytes of the PNG file.
    ///
    /// # Errors
    /// The picture cannot be encoded.
    pub fn finish(self) -> Result<Vec<u8>> {
        self.pixels.encode_png().map_err(Error::other)
    }

    fn fill(&mut self, path: Option<Path>, ink: Rgb) {
        if let Some(path) = path {
            let paint = paint(ink, 1.0);
            self.pixels.fill_path(&path, &paint, FillRule::Winding, self.scale, None);
        }
    }

    fn stroke(&mut self, path: Option<Path>, ink: Rgb, opacity: f32, width: f32) {
        if let Some(path) = path {
            let stroke = Stroke { width, ..Stroke::default() };
            self.pixels.stroke_path(&path, &paint(ink, opacity), &stroke, self.scale, None);
        }
    }

    /// Returns the width of a text, in the font's units.
    fn length(&self, text: &str) -> f32 {
        text.chars().map(|letter| self.advance(letter)).sum()
    }

    fn advance(&self, letter: char) -> f32 {
        // The first glyph is used for letters that the font lacks.
        let glyph = self.face.glyph_index(letter).unwrap_or_default();
        f32::from(self.face.glyph_hor_advance(glyph).unwrap_or(0))
    }
}

impl Canvas for Png {
    fn rectangle(&mut self, area: Area, fill: Rgb, _: Option<&str>) {
        self.fill(rectangle(area).map(PathBuilder::from_rect), fill);
    }

    fn outline(&mut self, area: Area, ink: Rgb, width: f64) {
        self.stroke(rectangle(area).map(PathBuilder::from_rect), ink, 1.0, width as f32);
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), ink: Rgb) {
        self.stroke(segment(from, to), ink, 1.0, 0.5);
    }

    fn arrow(&mut self, from: (f64, f64), to: (f64, f64), ink: Rgb, _: &str) {
        self.stroke(segment(from, to), ink, 0.75, 0.9);
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy);
        if length > 0.0 {
            // A tip as long and as wide as six lines.
            let along = (dx / length * 5.4, dy / length * 5.4);
            let across = (-along.1 / 2.0, along.0 / 2.0);
            let back = (to.0 - along.0, to.1 - along.1);
            let corners = [
                to,
                (back.0 + across.0, back.1 + across.1),
                (back.0 - across.0, back.1 - across.1),
            ];
            self.fill(polygon(&corners), ink);
        }
    }

    fn text(&mut self, (x, y): (f64, f64), style: Style, text: &str) {
        let scale = style.size as f32 / f32::from(self.face.units_per_em());
        let start = if style.is_centred { self.length(text) * scale / 2.0 } else { 0.0 };
        let mut outline =
            Outline { builder: PathBuilder::new(), origin: (x as f32 - start, y as f32), scale };
        for letter in text.chars() {
            let glyph = self.face.glyph_index(letter).unwrap_or_default();
            // A glyph without an outline is a space.
            let _ = self.face.outline_glyph(glyph, &mut outline);
            outline.origin.0 += self.advance(letter) * scale;
        }
        self.fill(outline.builder.finish(), style.ink);
    }
}

/// The outlines of glyphs, placed in the picture.
struct Outline {
    builder: PathBuilder,
    /// The position of the glyph's origin, in points.
    origin: (f32, f32),
    scale: f32,
}

impl Outline {
    /// A font's vertical axis points up, a picture's down.
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        (self.origin.0 + x * self.scale, self.origin.1 - y * self.scale)
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.builder.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.builder.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.builder.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2)) = (self.place(x1, y1), self.place(x2, y2));
        let (x, y) = self.place(x, y);
        self.builder.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.builder.close();
    }
}

fn paint([red, green, blue]: Rgb, opacity: f32) -> Paint<'static> {
    let mut paint = Paint::default();
    let mut colour = Color::from_rgba8(red, green, blue, 0xff);
    colour.set_alpha(opacity);
    paint.set_color(colour);
    paint
}

/// Returns a rectangle, unless it is empty or not finite.
fn rectangle(area: Area) -> Option<Rect> {
    let [x, y, width, height] = [area.x, area.y, area.width, area.height].map(|value| value as f32);
    Rect::from_xywh(x, y, width, height)
}

fn segment(from: (f64, f64), to: (f64, f64)) -> Option<Path> {
    let mut builder = PathBuilder::new();
    builder.move_to(from.0 as f32, from.1 as f32);
    builder.line_to(to.0 as f32, to.1 as f32);
    builder.finish()
}

fn polygon(corners: &[(f64, f64)]) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for (index, &(x, y)) in corners.iter().enumerate() {
        if index == 0 {
            builder.move_to(x as f32, y as f32);
        } else {
            builder.line_to(x as f32, y as f32);
        }
    }
    builder.close();
    builder.finish()
}
