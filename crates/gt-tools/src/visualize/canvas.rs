//! The primitives of a drawing, for every picture format.

/// A colour: red, green, blue.
pub type Rgb = [u8; 3];

/// A rectangle, in points from the top left corner of the picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// How text is written: its size in points, its colour, and whether it is centred at its position or starts there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Style {
    pub size: f64,
    pub ink: Rgb,
    pub is_centred: bool,
}

impl Style {
    /// Text of the usual size that starts at its position.
    pub const fn ink(ink: Rgb) -> Style {
        Style { size: 10.0, ink, is_centred: false }
    }

    /// Returns the same text in another size.
    pub const fn size(self, size: f64) -> Style {
        Style { size, ..self }
    }

    /// Returns the same text, centred.
    pub const fn centred(self) -> Style {
        Style { is_centred: true, ..self }
    }
}

/// A picture that is being drawn. Positions are in points; what is drawn later covers what was drawn before.
pub trait Canvas {
    /// Fills a rectangle. `title` is shown where a pointer rests, in pictures that can.
    fn rectangle(&mut self, area: Area, fill: Rgb, title: Option<&str>);

    /// Outlines a rectangle with a line of `width`.
    fn outline(&mut self, area: Area, ink: Rgb, width: f64);

    /// Draws a thin line.
    fn line(&mut self, from: (f64, f64), to: (f64, f64), ink: Rgb);

    /// Draws a line with a tip at its end.
    fn arrow(&mut self, from: (f64, f64), to: (f64, f64), ink: Rgb, title: &str);

    /// Writes one line of text, whose baseline is at `at`.
    fn text(&mut self, at: (f64, f64), style: Style, text: &str);
}
