// The part of gt.torch that needs PyTorch's C++ headers, built by `python -m gt.torch.build`.
//
// PyTorch calls the kernels of operators with its stack of arguments. The extension describes each
// call to GT, which replays the instructions of an earlier, equivalent call. A new call is forwarded
// to the operator's twin: the operator of the same name in the library `gt_cluster`, whose kernel is
// Python.

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <memory>
#include <vector>

namespace {

constexpr auto CLUSTER = c10::DeviceType::PrivateUse1;

// The type of an argument; must match `ArgumentKind` in argument.rs.
enum class Kind : uint32_t { None, Tensor, Integer, Float, Boolean, Text, List, Device, Other };

// Flags of a tensor; must match argument.rs.
constexpr uint8_t WRAPPED_NUMBER = 1, CONJUGATE_OR_NEGATIVE = 2;

// An argument or an item of a list; items follow their list. Must match `ExtensionArgument` in
// argument.rs.
struct Argument {
  Kind kind;
  // The number of axes of a tensor, of items of a list, or of bytes of a string.
  uint32_t count;
  // A number, the address of a string's bytes, or that of the TensorImpl.
  uint64_t value;
  uint64_t address;
  int64_t offset;
  const int64_t* sizes;
  const int64_t* strides;
  uint8_t dtype;
  uint8_t device;
  uint8_t marks;
};

// The description of a tensor to create; must match `NewTensor` in mod.rs.
struct Made {
  uint64_t address;
  uint64_t bytes;
  int64_t offset;
  const int64_t* sizes;
  const int64_t* strides;
  uint32_t rank;
  uint32_t dtype;
};

// How to proceed with a call; must match `CallOutcome` in mod.rs.
enum class Outcome : uint32_t { Done, Call, Record };

using Arguments = c10::SmallVector<Argument, 12>;

// The results of a call.
struct Results {
  c10::SmallVector<c10::IValue, 4> all;
  // The number of following tensors that belong to the list at the end of `all`.
  uint32_t left = 0;

  void push(at::Tensor tensor) {
    if (left > 0) {
      --left;
      all.back().toTensorList().push_back(std::move(tensor));
    } else {
      all.push_back(std::move(tensor));
    }
  }
};

// Functions in GT that the extension calls; must match `ExtensionCallbacks` in mod.rs.
struct Calls {
  Outcome (*begin)(const void* kernel, const Argument*, size_t, uint8_t dtype, Results*);
  void (*finish)(const void* kernel, const Argument*, size_t, const Argument*, size_t);
  void (*give_up)();
  void (*remove)(void* address);
} calls;

void take(const at::Tensor& tensor, Arguments& to) {
  Argument taken{};
  if (!tensor.defined()) {
    to.push_back(taken);
    return;
  }
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (!impl->has_storage() || impl->layout() != c10::kStrided || impl->is_python_dispatch()) {
    taken.kind = Kind::Other;
    to.push_back(taken);
    return;
  }
  const c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  taken.kind = Kind::Tensor;
  taken.count = static_cast<uint32_t>(impl->dim());
  taken.value = reinterpret_cast<uint64_t>(impl);
  taken.address = reinterpret_cast<uint64_t>(storage->data());
  taken.offset = impl->storage_offset();
  taken.sizes = impl->sizes().data();
  taken.strides = impl->strides().data();
  taken.dtype = static_cast<uint8_t>(tensor.scalar_type());
  taken.device = static_cast<uint8_t>(impl->device_type());
  taken.marks = (impl->is_wrapped_number() ? WRAPPED_NUMBER : 0) |
      (tensor.is_conj() || tensor.is_neg() ? CONJUGATE_OR_NEGATIVE : 0);
  to.push_back(taken);
}

void take(const c10::IValue& value, Arguments& to) {
  Argument taken{};
  if (value.isTensor()) {
    take(value.toTensor(), to);
    return;
  }
  if (value.isInt()) {
    taken.kind = Kind::Integer;
    taken.value = static_cast<uint64_t>(value.toInt());
  } else if (value.isDouble()) {
    double number = value.toDouble();
    taken.kind = Kind::Float;
    std::memcpy(&taken.value, &number, sizeof number);
  } else if (value.isBool()) {
    taken.kind = Kind::Boolean;
    taken.value = value.toBool();
  } else if (value.isString()) {
    const std::string& text = value.toStringRef();
    taken.kind = Kind::Text;
    taken.count = static_cast<uint32_t>(text.size());
    taken.value = reinterpret_cast<uint64_t>(text.data());
  } else if (value.isList()) {
    auto items = value.toListRef();
    taken.kind = Kind::List;
    taken.count = static_cast<uint32_t>(items.size());
    to.push_back(taken);
    for (const c10::IValue& item : items) {
      take(item, to);
    }
    return;
  } else if (value.isDevice()) {
    taken.kind = Kind::Device;
    const auto device = value.toDevice();
    taken.value = static_cast<uint64_t>(device.type()) << 8 | static_cast<uint8_t>(device.index());
  } else if (!value.isNone()) {
    taken.kind = Kind::Other;
  }
  to.push_back(taken);
}

// The kernel of an operator, which replays earlier calls.
class Repeated final : public c10::OperatorKernel {
 public:
  Repeated(const void* kernel, c10::OperatorHandle twin)
      : kernel_(kernel),
        twin_(std::move(twin)),
        arguments_(twin_.schema().arguments().size()),
        results_(twin_.schema().returns().size()) {}

  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) {
    Arguments given;
    for (const c10::IValue& value : torch::jit::last(*stack, arguments_)) {
      take(value, given);
    }
    auto dtype = static_cast<uint8_t>(c10::get_default_dtype_as_scalartype());
    Results results;
    switch (calls.begin(kernel_, given.data(), given.size(), dtype, &results)) {
      case Outcome::Done:
        torch::jit::drop(*stack, arguments_);
        for (c10::IValue& result : results.all) {
          stack->push_back(std::move(result));
        }
        return;
      case Outcome::Call:
        call(stack);
        return;
      case Outcome::Record:
        record(stack);
    }
  }

 private:
  void call(torch::jit::Stack* stack) const {
    twin_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), stack);
  }

  void record(torch::jit::Stack* stack) const {
    // Keep the arguments alive until GT has recorded which of them the call changed.
    auto last = torch::jit::last(*stack, arguments_);
    std::vector<c10::IValue> kept(last.begin(), last.end());
    try {
      call(stack);
    } catch (...) {
      calls.give_up();
      throw;
    }
    Arguments given, results;
    for (const c10::IValue& value : kept) {
      take(value, given);
    }
    for (const c10::IValue& value : torch::jit::last(*stack, results_)) {
      take(value, results);
    }
    calls.finish(kernel_, given.data(), given.size(), results.data(), results.size());
  }

  const void* kernel_;
  c10::OperatorHandle twin_;
  size_t arguments_, results_;
};

void give_tensor(Results* results, const Made* made) noexcept {
  auto address = reinterpret_cast<void*>(made->address);
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      static_cast<int64_t>(made->bytes),
      c10::DataPtr(address, address, calls.remove, c10::Device(CLUSTER, 0)),
      /*allocator=*/nullptr,
      /*resizable=*/false);
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(std::move(storage)),
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::scalarTypeToTypeMeta(static_cast<c10::ScalarType>(made->dtype)));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(
      c10::IntArrayRef(made->sizes, made->rank),
      c10::IntArrayRef(made->strides, made->rank),
      made->offset);
  results->push(std::move(tensor));
}

// Returns one of the arguments as a result.
void give_argument(Results* results, uint64_t tensor) noexcept {
  auto* impl = reinterpret_cast<c10::TensorImpl*>(tensor);
  results->push(at::Tensor(
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(impl)));
}

void give_integer(Results* results, int64_t number) noexcept {
  results->all.push_back(number);
}

void give_list(Results* results, uint32_t count) noexcept {
  results->all.push_back(c10::List<at::Tensor>());
  results->left = count;
}

// Returns an undefined tensor.
void give_nothing(Results* results) noexcept {
  results->push(at::Tensor());
}

// The only device is always the current one.
class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override {
    return CLUSTER;
  }
  c10::Device exchangeDevice(c10::Device) const override {
    return getDevice();
  }
  c10::Device getDevice() const override {
    return c10::Device(CLUSTER, 0);
  }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override {
    return c10::Stream(c10::Stream::DEFAULT, getDevice());
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return getStream(device);
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return getStream(device);
  }
  c10::Stream exchangeStream(c10::Stream) const override {
    return getStream(getDevice());
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return 1;
  }
  // There is one stream, so events impose no order.
  void record(void**, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override {
    return true;
  }
  void destroyEvent(void*, c10::DeviceIndex) const noexcept override {}
  void synchronizeEvent(void*) const override {}
  bool queryStream(const c10::Stream&) const override {
    return true;
  }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeDevice(c10::DeviceIndex) const override {}
};

std::vector<torch::Library>& libraries() {
  static auto* all = new std::vector<torch::Library>();
  return *all;
}

} // namespace

// Exchanges function pointers: GT's callbacks, and the functions by which GT returns results.
extern "C" void gt_torch_connect(const Calls* from, void** give) {
  calls = *from;
  give[0] = reinterpret_cast<void*>(give_tensor);
  give[1] = reinterpret_cast<void*>(give_argument);
  give[2] = reinterpret_cast<void*>(give_integer);
  give[3] = reinterpret_cast<void*>(give_list);
  give[4] = reinterpret_cast<void*>(give_nothing);
  static const c10::impl::DeviceGuardImplRegistrar guard(CLUSTER, new Guard());
  libraries().emplace_back(
      torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  auto& aten = libraries().back();
  aten.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  aten.impl("view", TORCH_FN(at::native::view));
  aten.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
}

// Registers the kernel of an operator such as `add` with the overload `Tensor`, and declares its
// twin. Returns an error message, or null.
extern "C" const char* gt_torch_register(
    const char* name,
    const char* overload,
    const char* schema,
    const void* kernel) {
  static std::string failure;
  try {
    // Never destroyed: it outlives the Python kernel, so that a call during interpreter shutdown
    // raises an ordinary error.
    static auto* twins = new torch::Library(
        torch::Library::FRAGMENT, "gt_cluster", std::nullopt, __FILE__, __LINE__);
    twins->def(schema);
    auto twin = c10::Dispatcher::singleton().findSchemaOrThrow(
        (std::string("gt_cluster::") + name).c_str(), overload);
    auto full = *overload ? std::string(name) + "." + overload : std::string(name);
    auto made = std::make_unique<Repeated>(kernel, std::move(twin));
    libraries().back().impl(
        full.c_str(),
        torch::CppFunction::makeFromBoxedKernel(c10::BoxedKernel::makeFromFunctor(std::move(made))));
    return nullptr;
  } catch (const std::exception& error) {
    failure = error.what();
    return failure.c_str();
  }
}
