/** Namespaces of events; each namespace has a file in `src/events/subjects`. */
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
