//! The use and memory of an NVIDIA GPU, read through NVIDIA's management library (NVML).
//!
//! The library is loaded at run time: on a machine without it, or with another version of the driver
//! than of the library, there is no GPU to show, and nothing is said. A thread of its own calls it,
//! as a call can take seconds; who asks receives what the thread has read last.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use gt_ir::gpu::{GpuMemory, GpuReading, GpuStatus};
use gt_worker::engine::Notifier;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

/// The library, as the driver installs it. The name without a number belongs to CUDA's toolkit.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// The least time between two readings.
const EVERY: Duration = Duration::from_secs(1);

/// A reading that is older is not shown: the library does not answer.
const LONGEST: Duration = Duration::from_secs(3);

/// The prefixes of the UUIDs of GPUs, and of MIG instances, which are parts of GPUs. CUDA leaves
/// them out.
const PREFIXES: [&str; 2] = ["GPU-", "MIG-"];

/// Reads a GPU's use when it is asked for, once a second at most.
pub struct GpuMonitor {
    shared: Arc<Shared>,
    /// `None` if the thread could not be started.
    reader: Option<Thread>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<ReadState>,
    /// Whether the reader is to read.
    is_wanted: AtomicBool,
    is_over: AtomicBool,
}

#[derive(Default)]
struct ReadState {
    gpu: Option<GpuStatus>,
    /// When the reader last read, or tried to.
    read_at: Option<Instant>,
    notify: Option<Notifier>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, ReadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores what was read, and notifies the worker's driver if it is new.
    fn store(&self, gpu: Option<GpuStatus>) {
        let mut state = self.lock();
        let is_new = state.gpu != gpu || state.read_at.is_none_or(|at| at.elapsed() >= LONGEST);
        (state.gpu, state.read_at) = (gpu, Some(Instant::now()));
        let notify = if is_new { state.notify.clone() } else { None };
        drop(state);
        if let Some(notify) = notify {
            notify();
        }
    }

    /// Waits until a reading is wanted. Returns false if none will be.
    fn awaits_wish(&self) -> bool {
        while !self.is_over.load(Ordering::Acquire) {
            if self.is_wanted.swap(false, Ordering::AcqRel) {
                return true;
            }
            thread::park();
        }
        false
    }

    /// Reads the GPU of a UUID whenever that is wanted, until the monitor is dropped.
    fn serve(&self, uuid: &str) {
        let library = LIBRARY.as_ref();
        let Ok(nvml) = Nvml::builder().lib_path(library).init() else { return };
        let mut found = None;
        while self.awaits_wish() {
            if found.is_none() {
                found = Gpu::find(&nvml, uuid).ok();
            }
            self.store(found.as_ref().map(Gpu::read));
        }
    }
}

impl GpuMonitor {
    /// Starts to read the GPU, or MIG instance, of a UUID: as CUDA shows it, or as `nvidia-smi` does.
    pub fn start(uuid: String) -> GpuMonitor {
        let shared = Arc::new(Shared { is_wanted: AtomicBool::new(true), ..Shared::default() });
        let of_reader = Arc::clone(&shared);
        let reader = thread::Builder::new().name("gt-gpu".into());
        let reader = reader.spawn(move || of_reader.serve(&uuid)).ok();
        GpuMonitor { shared, reader: reader.map(|reader| reader.thread().clone()) }
    }

    /// Sets what is called, on the reader's thread, when it has read something new.
    pub fn notify_by(&self, notify: Notifier) {
        self.shared.lock().notify = Some(notify);
    }

    /// Returns the GPU as it was last read, and has it read again if that was a second ago or more.
    /// `None` without the library, or if that does not know the GPU.
    pub fn latest(&self) -> Option<GpuStatus> {
        let state = self.shared.lock();
        let age = state.read_at.map(|at| at.elapsed());
        let mut gpu = state.gpu.clone();
        drop(state);
        if age.is_none_or(|age| age >= EVERY)
            && !self.shared.is_wanted.swap(true, Ordering::AcqRel)
            && let Some(reader) = &self.reader
        {
            reader.unpark();
        }
        if age.is_none_or(|age| age >= LONGEST)
            && let Some(gpu) = &mut gpu
        {
            gpu.reading = None;
        }
        gpu
    }
}

impl Drop for GpuMonitor {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        if let Some(reader) = &self.reader {
            reader.unpark();
        }
    }
}

/// A GPU, or a MIG instance, that the library knows.
struct Gpu<'nvml> {
    device: Device<'nvml>,
    /// What does not change.
    status: GpuStatus,
    /// Whether it is a GPU that is divided into instances: the library sums these up, and the
    /// worker's is not known.
    is_divided: bool,
}

impl<'nvml> Gpu<'nvml> {
    fn find(nvml: &'nvml Nvml, uuid: &str) -> Result<Gpu<'nvml>, NvmlError> {
        let has_prefix = PREFIXES.iter().any(|prefix| uuid.starts_with(prefix));
        let prefixes: &[&str] = if has_prefix { &[""] } else { &PREFIXES };
        let mut found = Err(NvmlError::NotFound);
        for prefix in prefixes {
            found = nvml.device_by_uuid(format!("{prefix}{uuid}"));
            if found.is_ok() {
                break;
            }
        }
        let device = found?;
        let uuid = device.uuid()?;
        let of_instance = uuid.starts_with(PREFIXES[1]).then(|| device.mig_parent_device());
        let index = match &of_instance {
            Some(parent) => parent.as_ref().ok().and_then(|parent| parent.index().ok()),
            None => device.index().ok(),
        };
        // GPUs without this feature return an error.
        let is_divided =
            of_instance.is_none() && device.mig_mode().is_ok_and(|mode| mode.current == 1);
        let status = GpuStatus { name: device.name()?, index, uuid, reading: None };
        Ok(Gpu { device, status, is_divided })
    }

    /// Returns it with its use. An error of the library, such as for a GPU that is lost, leaves out
    /// what it is about.
    fn read(&self) -> GpuStatus {
        let mut reading = GpuReading::default();
        if !self.is_divided {
            let percent = self.device.utilization_rates().ok().map(|rates| rates.gpu);
            reading.percent = percent.and_then(|percent| u8::try_from(percent).ok());
            let memory = self.device.memory_info().ok();
            reading.memory =
                memory.map(|memory| GpuMemory { used: memory.used, total: memory.total });
        }
        GpuStatus { reading: Some(reading), ..self.status.clone() }
    }
}
