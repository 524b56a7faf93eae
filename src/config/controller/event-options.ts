import { EVENT_NAMESPACES } from '../../lib/event-namespaces.ts'
import { option, section } from '../engine/schema.ts'
import { DAY_MS, HOUR_MS, MIB, MINUTE_MS } from '../engine/units.ts'
import { boolean, integer, path } from '../engine/values.ts'
import { choices, choicesOrNone, nullable, pattern } from './values.ts'

/** Destinations of events. HTTP streams have their own subscriptions. */
export const eventOptions = section('Stream of events of the network; see events.md.', {
  file: section('File of events, one line of JSON each.', {
    path: option(nullable(path()), {
      default: null,
      why: 'Path of the event file, mode 0600, outside of data. null: none.',
    }),
    namespaces: option(choices(EVENT_NAMESPACES), {
      default: EVENT_NAMESPACES.filter((one) => one !== 'metrics'),
      why: 'Namespaces written to the file.',
    }),
    bytesMax: option(integer(64 * 1024, 64 * 1024 * MIB), {
      default: 64 * MIB,
      why: 'Size at which the file is rotated to path.1, path.1 to path.2, and so on.',
    }),
    keep: option(integer(1, 100), { default: 5, why: 'Number of rotated files kept.' }),
    fsync: option(boolean(), {
      default: false,
      why: 'Syncs each batch to disk before the next one. false: a crash of the host may lose the last seconds.',
    }),
  }),
  stdout: section('Events on standard output, between the log lines.', {
    namespaces: option(choicesOrNone(EVENT_NAMESPACES), {
      default: [],
      why: 'Namespaces written to standard output; none by default.',
    }),
  }),
  metricsIntervalMs: option(integer(1000, HOUR_MS), {
    default: MINUTE_MS,
    why: 'Interval of the metrics of this controller, while anyone reads them.',
  }),
  entityCountIntervalMs: option(integer(1000, DAY_MS), {
    default: 5 * MINUTE_MS,
    why: 'Interval at which the leader counts the records of each kind, while anyone reads that.',
  }),
  metricFilter: option(pattern(), {
    default: '',
    why: 'Metrics written to file and standard output, by name.',
  }),
  sourceFilter: option(pattern(), {
    default: '',
    why: 'The same, by the id of their controller or router.',
  }),
})
