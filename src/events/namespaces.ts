import { EVENT_NAMESPACES, type EventNamespace } from '../lib/event-namespaces.ts'
import type { EventSubject } from './event-field.ts'
import { accessEndSubject } from './subjects/access-end.ts'
import { alertSubject } from './subjects/alert.ts'
import { apiSessionSubject } from './subjects/api-session.ts'
import { authenticationSubject } from './subjects/authentication.ts'
import { circuitSubject } from './subjects/circuit.ts'
import { clusterSubject } from './subjects/cluster.ts'
import { connectSubject, sdkSubject } from './subjects/connect.ts'
import { entityChangeSubject } from './subjects/entity-change.ts'
import { entityCountSubject } from './subjects/entity-count.ts'
import { linkSubject } from './subjects/link.ts'
import { metricsSubject } from './subjects/metrics.ts'
import { routerSubject } from './subjects/router.ts'
import { serviceSubject } from './subjects/service.ts'
import { sessionSubject } from './subjects/session.ts'
import { terminatorSubject } from './subjects/terminator.ts'
import { usageSubject } from './subjects/usage.ts'

export const eventSubjects: Readonly<Record<EventNamespace, EventSubject>> = {
  accessEnd: accessEndSubject,
  alert: alertSubject,
  apiSession: apiSessionSubject,
  authentication: authenticationSubject,
  circuit: circuitSubject,
  cluster: clusterSubject,
  connect: connectSubject,
  entityChange: entityChangeSubject,
  entityCount: entityCountSubject,
  link: linkSubject,
  metrics: metricsSubject,
  router: routerSubject,
  sdk: sdkSubject,
  service: serviceSubject,
  session: sessionSubject,
  terminator: terminatorSubject,
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
