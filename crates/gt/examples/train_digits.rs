//! `examples/train_digits.py` with the Rust API.
//!
//! `cargo run --release --example train_digits`, or with `-- HOST:PORT` on a server's workers.

use gt::nn::{Linear, Module, cross_entropy_loss};
use gt::optim::Sgd;
use gt::{Session, Tensor, no_grad};

const BATCH: usize = 64;
const EPOCHS: usize = 30;

struct Network {
    hidden: Linear,
    output: Linear,
}

impl Module for Network {
    fn forward(&self, pixels: &Tensor) -> gt::Result<Tensor> {
        self.output.forward(&self.hidden.forward(pixels)?.relu()?)
    }

    fn parameters(&self) -> Vec<Tensor> {
        [self.hidden.parameters(), self.output.parameters()].concat()
    }
}

/// Images of 64 pixels from 0 to 1, and their digits.
fn load() -> (Vec<f32>, Vec<i64>) {
    let text = include_str!("../../../python/gt/demo/digits.csv");
    let (mut images, mut labels) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let numbers: Vec<i64> =
            line.split(',').map(|number| number.parse().expect("a whole number")).collect();
        images.extend(numbers[..64].iter().map(|&pixel| pixel as f32 / 16.0));
        labels.push(numbers[64]);
    }
    (images, labels)
}

/// A permutation of the numbers below `count`, from `seed`.
fn shuffled(count: usize, seed: u64) -> Vec<i64> {
    let chance = gt::ir::philox::RandomStream::new(seed, 0);
    let mut order: Vec<i64> = (0..count as i64).collect();
    for last in (1..count).rev() {
        order.swap(last, chance.integer(last as u64, 0, last as i64 + 1) as usize);
    }
    order
}

fn main() -> gt::Result<()> {
    let session: Session = match std::env::args().nth(1) {
        Some(address) => gt::connect(&address, None, false)?,
        None => gt::embedded(1)?,
    };
    session.manual_seed(0);
    let (images, labels) = load();
    let count = labels.len();
    let images = Tensor::from_slice(&session, &images, &[count, 64])?;
    let labels = Tensor::from_slice(&session, &labels, &[count])?;
    // The file is shuffled; its first fifth is for testing, as in the Python example.
    let order: Vec<i64> = (0..count as i64).collect();
    let (test, train) = order.split_at(count / 5);
    let index = |places: &[i64]| Tensor::from_slice(&session, places, &[places.len()]);

    let model = Network {
        hidden: Linear::new(&session, 64, 128)?,
        output: Linear::new(&session, 128, 10)?,
    };
    let mut optimizer = Sgd::new(model.parameters(), 0.1, 0.9);
    for epoch in 1..=EPOCHS {
        let mut last = None;
        for batch in shuffled(train.len(), epoch as u64).chunks(BATCH) {
            let places: Vec<i64> = batch.iter().map(|&place| train[place as usize]).collect();
            let batch = index(&places)?;
            let scores = model.forward(&images.index_select(0, &batch)?)?;
            let loss = cross_entropy_loss(&scores, &labels.index_select(0, &batch)?)?;
            loss.backward()?;
            optimizer.step()?;
            optimizer.zero_grad()?;
            last = Some(loss);
        }
        if let Some(loss) = last.filter(|_| epoch % 10 == 0) {
            println!("epoch {epoch}: loss {:.4}", loss.item()?.as_f64());
        }
    }
    let test = index(test)?;
    let accuracy = no_grad(|| -> gt::Result<f64> {
        let scores = model.forward(&images.index_select(0, &test)?)?;
        let right = scores.argmax(&[1], false)?.eq(&labels.index_select(0, &test)?)?;
        right.cast(gt::DType::F32)?.mean(&[], false)?.item().map(gt::Scalar::as_f64)
    })?;
    println!("test accuracy: {:.1} %", accuracy * 100.0);
    assert!(accuracy >= 0.97, "the training reaches at least 97 %");
    Ok(())
}
