//! A drawing as pixels.

use std::io::{Error, Result};
use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

use super::Size;
use super::layout::POINTS;

/// The letters come with the program: a server may have none.
const FONT: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");

/// The bytes of a PNG file.
///
/// # Errors
/// The drawing cannot be read, which would be a mistake in it.
pub fn render(svg: &str, size: Size) -> Result<Vec<u8>> {
    let mut letters = Database::new();
    letters.load_font_data(FONT.to_vec());
    let options = Options { fontdb: Arc::new(letters), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(Error::other)?;
    let (width, height) = ((size.width * size.dpi) as u32, (size.height * size.dpi) as u32);
    let mut pixels = Pixmap::new(width.max(1), height.max(1))
        .ok_or_else(|| Error::other("a picture of this size cannot be made"))?;
    let scale = (size.dpi / POINTS) as f32;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(Error::other)
}
