import { EVENT_NAMESPACES, type EventNamespace } from '../lib/event-namespaces.ts'
import type { EventSubject } from './event-field.ts'
import { accessEndSubject } from './subjects/access-end.ts'
import { alertSubject } from './subjects/alert.ts'
import { apiSession } from './subjects/api-session.ts'
import { authenticationSubject } from './subjects/authentication.ts'
import { circuit } from './subjects/circuit.ts'
import { clusterSubject } from './subjects/cluster.ts'
import { connect, sdkSubject } from './subjects/connect.ts'
import { entityChangeSubject } from './subjects/entity-change.ts'
import { entityCountSubject } from './subjects/entity-count.ts'
import { link } from './subjects/link.ts'
import { metricsSubject } from './subjects/metrics.ts'
import { router } from './subjects/router.ts'
import { service } from './subjects/service.ts'
import { session } from './subjects/session.ts'
import { terminator } from './subjects/terminator.ts'
import { usageSubject } from './subjects/usage.ts'

export const eventSubjects: Readonly<Record<EventNamespace, EventSubject>> = {
  accessEnd: accessEndSubject,
  alert: alertSubject,
  apiSession,
  authentication: authenticationSubject,
  circuit,
  cluster: clusterSubject,
  connect,
  entityChange: entityChangeSubject,
  entityCount: entityCountSubject,
  link,
  metrics: metricsSubject,
  router,
  sdk: sdkSubject,
  service,
  session,
  terminator,
  usage: usageSubject,
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
