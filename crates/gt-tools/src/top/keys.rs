//! Keys, and the view that the user has chosen with them.

use gt_ir::status::WINDOWS;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    None,
    Draw,
    /// Switch to another dispatcher.
    Next,
    Leave,
}

/// The sort key of sessions; workers are in the order in which they connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionOrder {
    #[default]
    Used,
    Rate,
    Memory,
    Name,
}

impl SessionOrder {
    const fn next(self) -> SessionOrder {
        match self {
            SessionOrder::Used => SessionOrder::Rate,
            SessionOrder::Rate => SessionOrder::Memory,
            SessionOrder::Memory => SessionOrder::Name,
            SessionOrder::Name => SessionOrder::Used,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            SessionOrder::Used => "used",
            SessionOrder::Rate => "rate",
            SessionOrder::Memory => "memory",
            SessionOrder::Name => "name",
        }
    }
}

#[derive(Debug, Default)]
pub struct Keys {
    pub is_paused: bool,
    pub order: SessionOrder,
    /// Only workers and sessions with this in their names are shown.
    pub filter: String,
    /// Whether the filter is being typed.
    pub is_typing: bool,
    /// The number of workers that are scrolled over.
    pub scrolled: usize,
    pub has_help: bool,
    /// Whether users are shown instead of sessions.
    pub shows_users: bool,
    /// The index of the window of which device time is shown.
    pub window: usize,
}

impl Keys {
    /// Handles a key.
    pub fn press(&mut self, key: KeyEvent) -> Action {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Action::Leave;
        }
        if self.is_typing {
            match key.code {
                KeyCode::Enter => self.is_typing = false,
                KeyCode::Esc => {
                    self.is_typing = false;
                    self.filter.clear();
                }
                KeyCode::Backspace => {
                    self.filter.pop();
                }
                KeyCode::Char(letter) if self.filter.chars().count() < 40 => {
                    self.filter.push(letter);
                }
                _ => {}
            }
            return Action::Draw;
        }
        match key.code {
            KeyCode::Char('q') => return Action::Leave,
            KeyCode::Esc if self.filter.is_empty() && !self.has_help => return Action::Leave,
            KeyCode::Esc => {
                self.filter.clear();
                self.has_help = false;
            }
            KeyCode::Tab => return Action::Next,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('u') => self.shows_users = !self.shows_users,
            KeyCode::Char('w') => self.window = (self.window + 1) % WINDOWS.len(),
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('h' | '?') => self.has_help = !self.has_help,
            KeyCode::Down | KeyCode::Char('j') => self.scrolled += 1,
            KeyCode::Up | KeyCode::Char('k') => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::PageDown => self.scrolled += 10,
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(10),
            KeyCode::Home => self.scrolled = 0,
            _ => return Action::None,
        }
        Action::Draw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(keys: &mut Keys, text: &str) {
        for letter in text.chars() {
            keys.press(KeyEvent::from(KeyCode::Char(letter)));
        }
    }

    #[test]
    fn keys_sort_pause_and_filter() {
        let mut keys = Keys::default();
        press(&mut keys, "sp/gpu q");
        assert_eq!((keys.order, keys.is_paused), (SessionOrder::Rate, true));
        assert_eq!(keys.filter, "gpu q", "letters are typed, they do nothing else");
        keys.press(KeyEvent::from(KeyCode::Enter));
        assert_eq!(keys.press(KeyEvent::from(KeyCode::Esc)), Action::Draw);
        assert_eq!(keys.filter, "");
        assert_eq!(keys.press(KeyEvent::from(KeyCode::Esc)), Action::Leave);
        press(&mut keys, "ww");
        assert_eq!(WINDOWS[keys.window].0, "10min");
        press(&mut keys, "w");
        assert_eq!(WINDOWS[keys.window].0, "10s");
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(keys.press(interrupt), Action::Leave);
    }
}
