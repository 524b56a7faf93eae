/** Namespaces of events; the files in `src/events/subjects` define their events. */
export const EVENT_NAMESPACES = [
  'accessEnd',
  'alert',
  'apiSession',
  'authentication',
  'circuit',
  'cluster',
  'connect',
  'entityChange',
  'entityCount',
  'link',
  'metrics',
  'router',
  'sdk',
  'service',
  'session',
  'terminator',
  'usage',
] as const
export type EventNamespace = (typeof EVENT_NAMESPACES)[number]
