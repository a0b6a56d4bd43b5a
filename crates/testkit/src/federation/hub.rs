//! The aggregator of the federation in memory: what it is told and sends, and how another process takes its run up.

use veilsum_proto::aggregator::Event;

use super::{Happening, Heard, Wire, World};
use crate::prelude::*;

impl World {
    /// The aggregator's process is told something now.
    pub fn tell_hub(&mut self, input: aggregator::Input<'_>) {
        if let Some(notes) = &mut self.notes {
            let heard = match &input {
                aggregator::Input::Attached(site) => vec![Heard::Attached(*site)],
                aggregator::Input::Messages(all) => all.iter().map(|(s, b)| Heard::Frame(*s, b.to_vec())).collect(),
                aggregator::Input::Ask { query, .. } => vec![Heard::Ask(query.clone())],
                aggregator::Input::Tick => vec![Heard::Tick],
                _ => Vec::new(),
            };
            notes.heard.extend(heard.into_iter().map(|heard| (self.now, heard)));
        }
        let kind = match &input {
            aggregator::Input::Messages(frames) => frames.first().and_then(|(_, bytes)| kind_of(bytes)),
            _ => None,
        };
        let began = (self.clock)();
        self.aggregator.handle(input, Millis(self.now));
        *self.hub_took.entry(kind).or_default() += (self.clock)() - began;
    }

    pub(super) fn drain_aggregator(&mut self) {
        while let Some(output) = self.aggregator.poll() {
            let effect = !matches!(output, aggregator::Output::Event(_));
            if effect && self.hub_dies() {
                continue;
            }
            match output {
                aggregator::Output::Send { to, bytes } => {
                    let kind = kind_of(&bytes).expect("an aggregator sends whole frames");
                    self.note(to, false, kind, &bytes);
                    let wire = Wire { site: to, from_site: false, kind, bytes: &bytes, discloses: None };
                    for bytes in self.passes(&wire, &bytes).unwrap_or_default() {
                        self.transmit(to, || Happening::ToSite(to, bytes.clone()));
                    }
                }
                aggregator::Output::Persist(record) => self.log.extend(self.keeps.then_some(record)),
                aggregator::Output::Event(event) => {
                    if matches!(event, Event::Total { .. }) {
                        self.told_again += 1;
                        if let Some(before) = self.told.get(self.told_again - 1) {
                            assert_eq!(*before, event, "another total than the process before told");
                            continue;
                        }
                        self.told.push(event.clone());
                    }
                    self.events.push(event);
                }
            }
            if effect {
                self.hub_dies();
            }
        }
        if let Some(Millis(at)) = self.aggregator.next_wake()
            && self.wake_at.is_none_or(|w| at < w || w <= self.now)
        {
            self.wake_at = Some(at);
            let delay = at.saturating_sub(self.now);
            self.schedule(delay, Happening::Wake);
        }
    }

    /// True where the aggregator's process dies here. The next one takes the run up from what is durable, its application
    /// puts every question again, and the sites dial again.
    fn hub_dies(&mut self) -> bool {
        let number = self.hub_boundaries;
        self.hub_boundaries += 1;
        if !self.hub_crashes.contains(&number) {
            return false;
        }
        let read = |r: &aggregator::Record| codec::decode("journal entry", &codec::encode(r), usize::MAX);
        let entries = self.log.iter().map(|r| read(r).expect("an own entry"));
        let now = Millis(self.now);
        let next = match self.log.is_empty() {
            true => Aggregator::new(self.kit.coordinator(), now, &mut self.hub_rng),
            false => Aggregator::resume(self.kit.coordinator(), entries, now),
        };
        self.aggregator = next.expect("a run that can be taken up");
        self.told_again = 0;
        for (query, words) in self.asked.clone() {
            self.aggregator.handle(aggregator::Input::Ask { query, words }, now);
        }
        for site in 0..self.sites.len() as u16 {
            if self.sites[usize::from(site)].is_some() {
                self.schedule(2, Happening::Attach(site));
            }
        }
        true
    }

    /// The frame that reaches the aggregator next, where nothing else comes before it and it comes at this time.
    pub(super) fn next_to_hub(&mut self, at: u64) -> Option<(u16, Arc<Vec<u8>>)> {
        let next = self.queue.first_entry().filter(|next| next.key().0 == at)?;
        match next.get() {
            Happening::ToAggregator(from, bytes) => {
                let frame = (*from, bytes.clone());
                next.remove();
                Some(frame)
            }
            _ => None,
        }
    }
}
