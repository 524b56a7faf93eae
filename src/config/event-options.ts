import { EVENT_NAMESPACES } from '../lib/event-namespaces.ts'
import {
  boolean,
  choices,
  choicesOrNone,
  integer,
  option,
  optionalPath,
  pattern,
  section,
} from './option.ts'

const MIB = 1024 * 1024
const MINUTE_MS = 60 * 1000
const HOUR_MS = 60 * MINUTE_MS

/** Where events are written to; streams over HTTP say themselves what they want. */
export const eventOptions = section(
  'What happens in the network, as a stream of events; see events.md.',
  {
    file: section('A file of events, a line of JSON each.', {
      path: option(optionalPath(), {
        default: null,
        scope: 'node',
        why: 'File that they are written to, mode 0600, outside of data. null: none is written.',
      }),
      namespaces: option(choices(EVENT_NAMESPACES), {
        default: EVENT_NAMESPACES.filter((one) => one !== 'metrics'),
        scope: 'node',
        why: 'What is written.',
      }),
      bytesMax: option(integer(64 * 1024, 64 * 1024 * MIB), {
        default: 64 * MIB,
        scope: 'node',
        why: 'A file that would grow beyond is renamed to path.1, the one of before to path.2, and so on.',
      }),
      keep: option(integer(1, 100), {
        default: 5,
        scope: 'node',
        why: 'So many earlier files are kept.',
      }),
      fsync: option(boolean(), {
        default: false,
        scope: 'node',
        why: 'Whether each batch is on the disk before the next is written. false: the system decides, and a crash of the host may take the last seconds along.',
      }),
    }),
    stdout: section('Events on the standard output, between the lines of the log.', {
      namespaces: option(choicesOrNone(EVENT_NAMESPACES), {
        default: [],
        scope: 'node',
        why: 'What is written there; none by default.',
      }),
    }),
    metricsIntervalMs: option(integer(1000, HOUR_MS), {
      default: MINUTE_MS,
      scope: 'node',
      why: 'How often this controller emits its own metrics, while somebody reads them.',
    }),
    entityCountIntervalMs: option(integer(1000, 24 * HOUR_MS), {
      default: 5 * MINUTE_MS,
      scope: 'node',
      why: 'How often the leader counts the records of each kind, while somebody reads that.',
    }),
    metricFilter: option(pattern(), {
      default: '',
      scope: 'node',
      why: 'Which metrics go to file and standard output, by their names.',
    }),
    sourceFilter: option(pattern(), {
      default: '',
      scope: 'node',
      why: 'The same by the id of the controller or router that they are of.',
    }),
  },
)
