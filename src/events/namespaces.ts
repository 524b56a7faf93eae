import { EVENT_NAMESPACES, type EventNamespace } from '../lib/event-namespaces.ts'
import type { EventSubject } from './field.ts'
import { accessEndSubject } from './subjects/access-end.ts'
import { alert } from './subjects/alert.ts'
import { apiSession } from './subjects/api-session.ts'
import { authentication } from './subjects/authentication.ts'
import { circuit } from './subjects/circuit.ts'
import { cluster } from './subjects/cluster.ts'
import { connect, sdk } from './subjects/connect.ts'
import { entityChange } from './subjects/entity-change.ts'
import { entityCount } from './subjects/entity-count.ts'
import { link } from './subjects/link.ts'
import { metrics } from './subjects/metrics.ts'
import { router } from './subjects/router.ts'
import { service } from './subjects/service.ts'
import { session } from './subjects/session.ts'
import { terminator } from './subjects/terminator.ts'
import { usage } from './subjects/usage.ts'

export const eventSubjects: Readonly<Record<EventNamespace, EventSubject>> = {
  accessEnd: accessEndSubject,
  alert,
  apiSession,
  authentication,
  circuit,
  cluster,
  connect,
  entityChange,
  entityCount,
  link,
  metrics,
  router,
  sdk,
  service,
  session,
  terminator,
  usage,
}

const byName: ReadonlyMap<string, EventNamespace> = new Map(
  EVENT_NAMESPACES.flatMap((namespace) =>
    [namespace, ...eventSubjects[namespace].aliases].map((name) => [name, namespace] as const),
  ),
)

/** @returns undefined for an unknown name. */
export function findNamespace(name: string): EventNamespace | undefined {
  return byName.get(name)
}
