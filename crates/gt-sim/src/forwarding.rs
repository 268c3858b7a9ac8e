//! Engines of the simulation that compute with a native engine.

/// Implements the methods of an engine that its field `native` has as well.
macro_rules! forward_to_native {
    () => {
        type Tensor = gt_engine_native::Tensor;
        type Program = std::sync::Arc<gt_engine_native::NativeProgram>;

        fn lowers(&self, operation: &'static gt_ir::Operation) -> bool {
            self.native.lowers(operation)
        }

        fn create(
            &mut self,
            data: gt_ir::TensorData,
        ) -> std::result::Result<Self::Tensor, gt_worker::EngineError> {
            self.native.create(data)
        }

        fn read(
            &mut self,
            tensor: &Self::Tensor,
        ) -> std::result::Result<gt_ir::TensorData, gt_worker::EngineError> {
            self.native.read(tensor)
        }

        fn prepare(
            &mut self,
            plan: &gt_worker::plan::Plan,
        ) -> std::result::Result<Self::Program, gt_worker::EngineError> {
            self.native.prepare(plan)
        }

        fn launch(
            &mut self,
            program: &mut Self::Program,
            inputs: &mut [gt_worker::plan::InputValue<Self::Tensor>],
        ) -> std::result::Result<Vec<Self::Tensor>, gt_worker::EngineError> {
            self.native.launch(program, inputs)
        }

        fn is_unchecked(&mut self, program: &mut Self::Program) -> bool {
            self.native.is_unchecked(program)
        }

        fn judge(&mut self, program: &mut Self::Program, wrong: Option<&str>) {
            self.native.judge(program, wrong);
        }
    };
}

pub(crate) use forward_to_native;
