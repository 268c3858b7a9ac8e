//! Searches what a program's variables refer to for tensors.
//!
//! The program must not notice: no code of classes is run (properties, `__getattr__`, `__repr__`,
//! `__torch_function__`), so what is not a known container or has no plain attributes is not searched.
//! The interpreter's lock is held meanwhile, for a limited time, so nothing changes.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyModule, PyString, PyTuple, PyType};

use super::roots::{self, Variable};

/// How long the program waits for a search, and how many entries of containers are looked at.
const LONGEST: Duration = Duration::from_millis(50);
const MOST_ENTRIES: usize = 200_000;
/// The most entries of one container.
const MOST_OF_ONE: usize = 20_000;
/// The clock is read once for this many entries.
const BETWEEN_LOOKS: usize = 256;
/// The most letters of a name.
const LONGEST_NAME: usize = 200;

/// An object on the way from a variable to a tensor.
struct FoundObject<'py> {
    object: Bound<'py, PyAny>,
    /// The object that refers to it, by its place among those found, and how.
    from: Option<usize>,
    step: Reference,
}

/// How one object refers to another.
enum Reference {
    Variable(String),
    Attribute(String),
    Index(usize),
    Key(String),
    /// A dict's key that is an object: that of this address.
    Object(usize, String),
    Gradient,
    /// A dict that is not named: a module's parameters are its attributes.
    Inside,
}

/// A search in progress.
pub struct VariableSearch<'py> {
    found: Vec<FoundObject<'py>>,
    waiting: VecDeque<usize>,
    /// Entries whose keys may be named by what is found later, as parameters in an optimizer's state.
    keyed: VecDeque<usize>,
    seen: HashSet<usize>,
    /// The places of tensors by address.
    tensors: HashMap<usize, usize>,
    entries: usize,
    until: Instant,
}

impl<'py> VariableSearch<'py> {
    /// Calls `visit` with each tensor that a variable refers to, and an expression for it, nearer ones
    /// first. `visit` returns whether an object is a tensor, and its gradient, if it has one.
    pub fn run(
        py: Python<'py>,
        mut visit: impl FnMut(&Bound<'py, PyAny>, &dyn Fn() -> String) -> Visited<'py>,
    ) {
        let mut search = VariableSearch {
            found: Vec::new(),
            waiting: VecDeque::new(),
            keyed: VecDeque::new(),
            seen: HashSet::new(),
            tensors: HashMap::new(),
            entries: 0,
            until: Instant::now() + LONGEST,
        };
        for Variable { name, value } in roots::variables(py) {
            search.add(value, None, Reference::Variable(name));
        }
        while let Some(place) = search.waiting.pop_front().or_else(|| search.keyed.pop_front()) {
            let object = search.found[place].object.clone();
            let visited = visit(&object, &|| search.name(place));
            match visited {
                Visited::Tensor(gradient) => {
                    search.tensors.insert(object.as_ptr() as usize, place);
                    if let Some(gradient) = gradient {
                        search.add(gradient, Some(place), Reference::Gradient);
                    }
                }
                Visited::Other if search.has_time() => search.open(&object, place),
                Visited::Other => {}
            }
        }
    }

    fn has_time(&self) -> bool {
        self.entries < MOST_ENTRIES && Instant::now() < self.until
    }

    /// Counts an entry. Returns whether there is time for it.
    fn count(&mut self) -> bool {
        self.entries += 1;
        self.entries < MOST_ENTRIES
            && (!self.entries.is_multiple_of(BETWEEN_LOOKS) || Instant::now() < self.until)
    }

    fn add(&mut self, object: Bound<'py, PyAny>, from: Option<usize>, step: Reference) {
        if !may_lead_to_tensors(&object) || !self.seen.insert(object.as_ptr() as usize) {
            return;
        }
        let is_keyed = matches!(step, Reference::Object(..));
        self.found.push(FoundObject { object, from, step });
        let place = self.found.len() - 1;
        if is_keyed { self.keyed.push_back(place) } else { self.waiting.push_back(place) }
    }

    /// Adds what an object refers to.
    fn open(&mut self, object: &Bound<'py, PyAny>, place: usize) {
        if let Ok(list) = object.cast::<PyList>() {
            self.open_items(list.iter(), place);
        } else if let Ok(tuple) = object.cast::<PyTuple>() {
            self.open_items(tuple.iter(), place);
        } else if let Ok(dict) = object.cast::<PyDict>() {
            let is_inside = matches!(self.found[place].step, Reference::Inside);
            for (key, value) in dict.iter().take(MOST_OF_ONE) {
                if !self.count() {
                    return;
                }
                if may_lead_to_tensors(&value) {
                    let step = step_to(&key, is_inside);
                    self.add(value, Some(place), step);
                }
            }
        } else if let Some(attributes) = attributes(object) {
            for (name, value) in attributes.iter().take(MOST_OF_ONE) {
                if !self.count() {
                    return;
                }
                let Some(name) = text(&name) else { continue };
                let step = match &*name {
                    "_parameters" | "_buffers" | "_modules" => Reference::Inside,
                    _ => Reference::Attribute(name),
                };
                self.add(value, Some(place), step);
            }
        }
    }

    fn open_items(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>, place: usize) {
        for (index, value) in items.take(MOST_OF_ONE).enumerate() {
            if !self.count() {
                return;
            }
            self.add(value, Some(place), Reference::Index(index));
        }
    }

    /// Returns an expression for an object, as `model.fc1.weight`.
    fn name(&self, place: usize) -> String {
        let mut parts = Vec::new();
        let mut at = Some(place);
        while let Some(place) = at {
            let FoundObject { from, step, .. } = &self.found[place];
            parts.push(match step {
                Reference::Variable(name) => name.clone(),
                Reference::Attribute(name) => format!(".{name}"),
                Reference::Index(index) => format!("[{index}]"),
                Reference::Key(key) => format!("[{key}]"),
                Reference::Object(address, kind) => match self.tensors.get(address) {
                    Some(tensor) => format!("[{}]", self.name(*tensor)),
                    None => format!("[<{kind}>]"),
                },
                Reference::Gradient => ".grad".into(),
                Reference::Inside => String::new(),
            });
            at = *from;
        }
        parts.iter().rev().flat_map(|part| part.chars()).take(LONGEST_NAME).collect()
    }
}

/// What an object is to a search.
pub enum Visited<'py> {
    /// A tensor, with its gradient, if it has one.
    Tensor(Option<Bound<'py, PyAny>>),
    Other,
}

/// Returns whether an object may be a tensor or refer to one: numbers, texts and the like do not.
fn may_lead_to_tensors(object: &Bound<'_, PyAny>) -> bool {
    let is_container = object.is_instance_of::<PyDict>()
        || object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>();
    let is_code = object.is_instance_of::<PyType>() || object.is_instance_of::<PyModule>();
    is_container || (!is_code && is_of_heap_type(object))
}

/// Returns whether an object's class was made at run time, as all classes of Python code are.
fn is_of_heap_type(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the type of a live object is a live type object, and its flags are read only.
    let flags = unsafe { ffi::PyType_GetFlags(ffi::Py_TYPE(object.as_ptr())) };
    flags & ffi::Py_TPFLAGS_HEAPTYPE != 0
}

/// Returns the instance's own attributes, if it has a dict for them: nothing of its class is asked.
fn attributes<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyDict>> {
    if !is_of_heap_type(object) {
        return None;
    }
    let py = object.py();
    // SAFETY: the object is live, no context is needed, and the result is a new reference or null
    // with an exception, which is cleared by taking it.
    let dict = unsafe {
        let dict = ffi::PyObject_GenericGetDict(object.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, dict)
    };
    dict.ok()?.cast_into::<PyDict>().ok()
}

/// Returns how a dict refers to a value by a key; `is_inside` if its keys are attributes.
fn step_to(key: &Bound<'_, PyAny>, is_inside: bool) -> Reference {
    if let Some(name) = text(key) {
        return match is_inside {
            true => Reference::Attribute(name),
            false => Reference::Key(format!("'{}'", name.escape_debug())),
        };
    }
    if key.is_exact_instance_of::<PyInt>()
        && let Ok(number) = key.extract::<i64>()
    {
        return Reference::Key(number.to_string());
    }
    // A class's name is stored in the class itself.
    let kind = key.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    Reference::Object(key.as_ptr() as usize, kind)
}

/// Returns a text that is a plain `str`.
fn text(of: &Bound<'_, PyAny>) -> Option<String> {
    if !of.is_exact_instance_of::<PyString>() {
        return None;
    }
    of.cast::<PyString>().ok()?.to_str().ok().map(str::to_string)
}
