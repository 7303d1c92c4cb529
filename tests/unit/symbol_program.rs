// SPDX-License-Identifier: Apache-2.0
use std::collections::HashMap;

#[derive(Clone, Debug)]
struct Item<T> {
    values: Vec<T>,
    name: String,
}

trait Grow {
    fn grow(&mut self, n: usize) -> usize;
}

impl<T: Default + Clone> Grow for Item<T> {
    fn grow(&mut self, n: usize) -> usize {
        for _ in 0..n {
            self.values.push(T::default());
        }
        self.values.len()
    }
}

#[inline(never)]
fn work(n: usize) -> usize {
    let mut items: HashMap<String, Item<u64>> = HashMap::new();
    for i in 0..n {
        let mut item = Item { values: vec![], name: format!("{}-x", i) };
        item.grow(i);
        let key = item.name.clone();
        items.insert(key, item);
    }
    let mut keys: Vec<_> = items.keys().cloned().collect();
    keys.sort_by(|a, b| b.cmp(a));
    keys.iter().map(|k| items[k].values.iter().map(|x| *x as usize + 1).sum::<usize>()).sum()
}

fn main() {
    let thread = std::thread::spawn(|| work(100));
    println!("{} {:?}", thread.join().unwrap(), work(10));
}
