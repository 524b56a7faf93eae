import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

import { unverifiedTokenLimits } from '../src/auth/tokens/unverified-token.ts'
import { enrollmentLimits } from '../src/api/enrollment/limits.ts'
import { httpLimits } from '../src/api/http/limits.ts'
import { recordLimits } from '../src/api/records/limits.ts'
import { signerLimits } from '../src/api/signers/limits.ts'
import { apiSessionLimits } from '../src/api/sessions/limits.ts'
import { externalTokenLimits } from '../src/auth/tokens/limits.ts'
import { responseTimeLimits } from '../src/api/cluster/response-time-limits.ts'
import { traceMsMax } from '../src/ports/identity-traces.ts'
import { explanationRequestLimits } from '../src/api/access/explain.ts'
import { explanationViewLimits } from '../src/api/access/readable-explanations.ts'
import { previewResponseLimits } from '../src/api/access/preview.ts'
import { previewBodyLimits } from '../src/api/access/preview-schema.ts'
import { roleCountLimits } from '../src/api/access/role-counts.ts'
import { trafficLimits } from '../src/api/traffic/limits.ts'
import { clusterTrafficLimits } from '../src/cluster/traffic/limits.ts'
import { metricHistoryLimits } from '../src/api/metrics/metric-history.ts'
import { refusedWriteLogLimits } from '../src/api/http/refused-write-log-quota.ts'
import { detachedReferenceLimits } from '../src/api/records/detached-references.ts'
import { inspectionLimits } from '../src/api/fabric/inspections.ts'
import { validationLimits } from '../src/api/fabric/validations.ts'
import { traceLimits } from '../src/fabric/circuits/traced-identities.ts'
import { callerWriteLimits } from '../src/api/http/caller-write-limiter.ts'
import { channelLimits } from '../src/channel/limits.ts'
import { messageBounds, UNLISTED_BODY_BYTES_MAX } from '../src/channel/message-bounds.ts'
import { messageContentLimits } from '../src/channel/messages/limits.ts'
import { FIELD_ELEMENTS_MAX } from '../src/channel/wire-scan.ts'
import { networkFileLimits } from '../src/cli/network/sections.ts'
import { deviceLogInLimits } from '../src/auth/oidc/device-log-ins.ts'
import { clientResponseLimits } from '../src/cli/client/api-client.ts'
import * as timeouts from '../src/client/timeouts.ts'
import { contextLimits } from '../src/cli/client/context-file.ts'
import { sessionRenewalLimits } from '../src/cli/client/session-tokens.ts'
import { redirectListenerLimits } from '../src/cli/log-in/redirect-listener.ts'
import { lineBufferLimits } from '../src/cli/terminal/line-writer.ts'
import { adminSocketLimits } from '../src/controller/admin/socket.ts'
import { admissionLimits } from '../src/cluster/membership/join-tickets.ts'
import { SEED_LIMITS } from '../src/cluster/mesh/seed-finder.ts'
import { ADDRESS_CLAIM_LIMITS } from '../src/cluster/mesh/address-book.ts'
import { defaultClusterNodeOptions } from '../src/cluster/cluster-node-deps.ts'
import { HELLO_LIMITS } from '../src/cluster/mesh/handshake.ts'
import { membershipLimits } from '../src/cluster/membership/limits.ts'
import { CONFIG_BYTES_MAX, CONFIG_FAULTS_MAX } from '../src/config/engine/load.ts'
import { yamlTreeLimits } from '../src/config/engine/yaml-tree.ts'
import { failedRequestLimits } from '../src/posture/failed-request-log.ts'
import { meshLimits } from '../src/cluster/mesh/limits.ts'
import { MESH_FRAME_BYTES_MAX } from '../src/cluster/mesh/mesh-service.ts'
import { postureLimits } from '../src/posture/posture-reports.ts'
import { quarantineLimits } from '../src/cluster/state-transfer/quarantine.ts'
import { MEMBERSHIP_CACHE_LIMITS } from '../src/cluster/mesh/membership-cache.ts'
import { backupLimits } from '../src/backup/limits.ts'
import { migrateLimits } from '../src/migrate/limits.ts'
import { restoreLimits } from '../src/fsm/records/restore-limits.ts'
import { defaultSnapshotReceiverOptions } from '../src/cluster/state-transfer/snapshot-receiver.ts'
import { defaultSnapshotSenderOptions } from '../src/cluster/state-transfer/snapshot-sender.ts'
import { classViewLimits } from '../src/fsm/access/access-class-cache.ts'
import { explanationLimits } from '../src/fsm/access/explanation.ts'
import { accessExpiryLimits } from '../src/fsm/expiry/expire-access.ts'
import { previewLimits } from '../src/fsm/access/relation-change-finder.ts'
import { lockoutLimits, mfaLimits } from '../src/fsm/apply/authentication.ts'
import { recoveryCodesMax } from '../src/fsm/identities/mfa.ts'
import { PROMPT_GRACE_MS } from '../src/posture/factor-evaluation.ts'
import { promptedServicesMax } from '../src/posture/posture-access.ts'
import { disableMinutesMax } from '../src/entities/parts/identity-credentials.ts'
import { thirdPartyCasMax } from '../src/fsm/enrollment/ca-rules.ts'
import { revocationLimits } from '../src/fsm/sessions/revocation-rules.ts'
import { serviceConfigsPerIdentityMax } from '../src/fsm/services/service-configs.ts'
import { auditLimits } from '../src/fsm/records/audit-line.ts'
import { auditQueryLimits } from '../src/fsm/audit-query.ts'
import { clientChainLimits } from '../src/pki/verify/client-chain.ts'
import { batchLimits } from '../src/fsm/apply/entity.ts'
import { integrityLimits } from '../src/fsm/cluster/integrity.ts'
import { hostedTerminatorLimits } from '../src/fsm/services/hosted-terminator.ts'
import { serviceSessionLimits } from '../src/fsm/sessions/service-session.ts'
import { joiningLimits } from '../src/fsm/cluster/join-tickets.ts'
import { secretLimits } from '../src/fsm/cluster/secret.ts'
import { stateTransferLimits } from '../src/cluster/state-transfer/state-transfer-server.ts'
import { softTopics } from '../src/ports/soft-topics.ts'
import { defaultSoftStateOptions } from '../src/cluster/soft-state/soft-state.ts'
import {
  apiSessionsMax,
  apiSessionsPerIdentityMax,
  sessionsAwaitingCodeMax,
} from '../src/fsm/sessions/session.ts'
import {
  requestIdAheadMsMax,
  requestIdsBytesMax,
  requestIdsPerCallerBytesMax,
  requestIdRetentionMs,
} from '../src/fsm/records/deduplication.ts'
import { pageLimits } from '../src/fsm/query/list.ts'
import { queryLimits } from '../src/fsm/query/scanner.ts'
import { writeBehindDefaults } from '../src/fsm/records/write-behind.ts'
import { eventLimits } from '../src/events/limits.ts'
import { descriptorLimits } from '../src/lib/bounds/file-descriptors.ts'
import { patternCharactersMax } from '../src/lib/text/text-pattern.ts'
import { fieldLimits } from '../src/entities/fields.ts'
import { ENTRY_BODY_BYTES_MAX } from '../src/raft/entry-codec.ts'
import { defaultRaftNodeLimits } from '../src/raft/node-start.ts'
import { defaultCoreOptions } from '../src/raft/options.ts'
import { routerProgramLimits } from '../src/router/limits.ts'
import { circuitLimits } from '../src/overlay/circuits/limits.ts'
import { serviceLimits } from '../src/overlay/services/limits.ts'
import { interceptLimits } from '../src/overlay/intercept/limits.ts'
import { interceptTargetLimits } from '../src/lib/intercept/limits.ts'
import { missingListenerLogLimits } from '../src/api/identities/limits.ts'
import { socketLimits } from '../src/overlay/sockets/limits.ts'
import { controllerLimits } from '../src/router/controllers/limits.ts'
import { certificateLimits } from '../src/router/identity/limits.ts'
import { linkLimits } from '../src/router/links/limits.ts'
import { forwardLimits } from '../src/router/forward/limits.ts'
import { edgeLimits } from '../src/router/edge/limits.ts'
import { modelLimits } from '../src/router/model/limits.ts'
import { tunnelTerminatorLimits } from '../src/router/tunnel/limits.ts'
import { reportLimits } from '../src/router/reports/limits.ts'
import { monitoringLimits } from '../src/overlay/monitoring/limits.ts'
import { tunnelLimits } from '../src/tunnel/limits.ts'
import { routerLimits } from '../src/fabric/limits.ts'
import { DAMAGED_BYTES_MAX } from '../src/store/log/repair-log.ts'
import { snapshotFileLimits } from '../src/controller/backups/snapshot-folder.ts'
import { pageNames, pageText } from './support/pages.ts'

// Checks that the values in docs/internals/limits.md equal those in the code.

const docs = join(import.meta.dirname, '../docs')
const page = join(docs, 'internals/limits.md')
const callersPage = join(docs, 'reference/limits.md')

const { retention, ...clusterNode } = defaultClusterNodeOptions
const tables: Readonly<Record<string, object>> = {
  'src/api/http/limits.ts': httpLimits,
  'src/api/records/limits.ts': recordLimits,
  'src/api/enrollment/limits.ts': enrollmentLimits,
  'src/api/sessions/limits.ts': apiSessionLimits,
  'src/api/signers/limits.ts': signerLimits,
  'src/auth/tokens/limits.ts': externalTokenLimits,
  'src/auth/tokens/unverified-token.ts': unverifiedTokenLimits,
  'src/api/http/refused-write-log-quota.ts': refusedWriteLogLimits,
  'src/api/records/detached-references.ts': detachedReferenceLimits,
  'src/api/http/caller-write-limiter.ts': callerWriteLimits,
  'src/api/fabric/inspections.ts': inspectionLimits,
  'src/api/fabric/validations.ts': validationLimits,
  'src/api/access/explain.ts': explanationRequestLimits,
  'src/api/access/readable-explanations.ts': explanationViewLimits,
  'src/api/access/role-counts.ts': roleCountLimits,
  'src/api/metrics/metric-history.ts': metricHistoryLimits,
  'src/api/traffic/limits.ts': trafficLimits,
  'src/cluster/traffic/limits.ts': clusterTrafficLimits,
  'src/api/access/preview.ts': previewResponseLimits,
  'src/api/access/preview-schema.ts': previewBodyLimits,
  'src/fabric/circuits/traced-identities.ts': traceLimits,
  'src/api/cluster/response-time-limits.ts': responseTimeLimits,
  'src/ports/identity-traces.ts': { traceMsMax },
  'src/fsm/query/list.ts': pageLimits,
  'src/auth/oidc/device-log-ins.ts': deviceLogInLimits,
  'src/fsm/query/scanner.ts': queryLimits,
  'src/fsm/records/deduplication.ts': {
    requestIdRetentionMs,
    requestIdAheadMsMax,
    requestIdsBytesMax,
    requestIdsPerCallerBytesMax,
  },
  'src/fsm/sessions/session.ts': {
    apiSessionsMax,
    apiSessionsPerIdentityMax,
    sessionsAwaitingCodeMax,
  },
  'src/entities/fields.ts': fieldLimits,
  'src/fsm/apply/authentication.ts': { ...mfaLimits, ...lockoutLimits },
  'src/posture/factor-evaluation.ts': { PROMPT_GRACE_MS },
  'src/posture/posture-access.ts': { promptedServicesMax },
  'src/fsm/identities/mfa.ts': { recoveryCodesMax },
  'src/entities/parts/identity-credentials.ts': { disableMinutesMax },
  'src/fsm/services/service-configs.ts': { serviceConfigsPerIdentityMax },
  'src/fsm/enrollment/ca-rules.ts': { thirdPartyCasMax },
  'src/fsm/sessions/revocation-rules.ts': revocationLimits,
  'src/fsm/services/hosted-terminator.ts': hostedTerminatorLimits,
  'src/fsm/sessions/service-session.ts': serviceSessionLimits,
  'src/fsm/access/access-class-cache.ts': classViewLimits,
  'src/fsm/access/explanation.ts': explanationLimits,
  'src/fsm/access/relation-change-finder.ts': previewLimits,
  'src/fsm/expiry/expire-access.ts': accessExpiryLimits,
  'src/fsm/cluster/join-tickets.ts': joiningLimits,
  'src/fsm/cluster/secret.ts': secretLimits,
  'src/fsm/apply/entity.ts': batchLimits,
  'src/fsm/cluster/integrity.ts': integrityLimits,
  'src/fsm/records/audit-line.ts': auditLimits,
  'src/fsm/audit-query.ts': auditQueryLimits,
  'src/fsm/records/write-behind.ts': writeBehindDefaults,
  'src/cli/terminal/line-writer.ts': lineBufferLimits,
  'src/cli/client/context-file.ts': contextLimits,
  'src/client/timeouts.ts': {
    ...named('command', timeouts.commandTimeouts),
    ...named('page', timeouts.consoleTimeouts),
    FAILED_MEMBER_AVOIDANCE_MS: timeouts.FAILED_MEMBER_AVOIDANCE_MS,
    OWN_DATA_TIMEOUT_MS: timeouts.OWN_DATA_TIMEOUT_MS,
  },
  'src/cli/client/api-client.ts': clientResponseLimits,
  'src/cli/client/session-tokens.ts': sessionRenewalLimits,
  'src/cli/log-in/redirect-listener.ts': redirectListenerLimits,
  'src/cli/network/sections.ts': networkFileLimits,
  'src/cluster/cluster-node-deps.ts': clusterNode,
  'src/cluster/state-transfer/log-retention.ts': retention,
  'src/controller/admin/socket.ts': adminSocketLimits,
  'src/cluster/membership/join-tickets.ts': admissionLimits,
  'src/cluster/mesh/handshake.ts': HELLO_LIMITS,
  'src/cluster/membership/limits.ts': membershipLimits,
  'src/cluster/mesh/membership-cache.ts': MEMBERSHIP_CACHE_LIMITS,
  'src/cluster/mesh/address-book.ts': ADDRESS_CLAIM_LIMITS,
  'src/cluster/mesh/seed-finder.ts': SEED_LIMITS,
  'src/cluster/mesh/limits.ts': meshLimits,
  'src/cluster/mesh/mesh-service.ts': { MESH_FRAME_BYTES_MAX },
  'src/cluster/state-transfer/snapshot-receiver.ts': defaultSnapshotReceiverOptions,
  'src/cluster/state-transfer/snapshot-sender.ts': defaultSnapshotSenderOptions,
  'src/cluster/state-transfer/quarantine.ts': quarantineLimits,
  'src/cluster/state-transfer/state-transfer-server.ts': stateTransferLimits,
  'src/cluster/soft-state/soft-state.ts': defaultSoftStateOptions,
  'src/ports/soft-topics.ts': softTopicLimits(),
  'src/posture/posture-reports.ts': postureLimits,
  'src/posture/failed-request-log.ts': failedRequestLimits,
  'src/backup/limits.ts': backupLimits,
  'src/migrate/limits.ts': migrateLimits,
  'src/fsm/records/restore-limits.ts': restoreLimits,
  'src/events/limits.ts': eventLimits,
  'src/lib/bounds/file-descriptors.ts': descriptorLimits,
  'src/lib/text/text-pattern.ts': { patternCharactersMax },
  'src/channel/limits.ts': channelLimits,
  'src/channel/message-bounds.ts': messageLimits(),
  'src/channel/messages/limits.ts': messageContentLimits,
  'src/channel/wire-scan.ts': { FIELD_ELEMENTS_MAX },
  'src/fabric/limits.ts': routerLimits,
  'src/router/limits.ts': routerProgramLimits,
  'src/overlay/circuits/limits.ts': circuitLimits,
  'src/overlay/services/limits.ts': serviceLimits,
  'src/overlay/intercept/limits.ts': interceptLimits,
  'src/lib/intercept/limits.ts': interceptTargetLimits,
  'src/api/identities/limits.ts': missingListenerLogLimits,
  'src/overlay/sockets/limits.ts': socketLimits,
  'src/router/controllers/limits.ts': controllerLimits,
  'src/router/identity/limits.ts': certificateLimits,
  'src/router/links/limits.ts': linkLimits,
  'src/router/forward/limits.ts': forwardLimits,
  'src/router/edge/limits.ts': edgeLimits,
  'src/router/model/limits.ts': modelLimits,
  'src/router/tunnel/limits.ts': tunnelTerminatorLimits,
  'src/router/reports/limits.ts': reportLimits,
  'src/overlay/monitoring/limits.ts': monitoringLimits,
  'src/tunnel/limits.ts': tunnelLimits,
  'src/config/engine/load.ts': { CONFIG_BYTES_MAX, CONFIG_FAULTS_MAX },
  'src/config/engine/yaml-tree.ts': yamlTreeLimits,
  'src/pki/verify/client-chain.ts': clientChainLimits,
  'src/raft/entry-codec.ts': { ENTRY_BODY_BYTES_MAX },
  'src/store/log/repair-log.ts': { DAMAGED_BYTES_MAX },
  'src/controller/backups/snapshot-folder.ts': snapshotFileLimits,
  'src/raft/options.ts': defaultCoreOptions,
  'src/raft/node-start.ts': defaultRaftNodeLimits,
}

function named(name: string, limits: object): object {
  return Object.fromEntries(Object.entries(limits).map(([key, value]) => [`${name} ${key}`, value]))
}

function messageLimits(): object {
  const rows = Object.entries(messageBounds).flatMap(([name, { bytesMax, elementsMax }]) => [
    [`${name} bytesMax`, bytesMax],
    ...(elementsMax === 0 ? [] : [[`${name} elementsMax`, elementsMax]]),
  ])
  return Object.fromEntries([
    ...rows,
    ['UNLISTED_BODY_BYTES_MAX', UNLISTED_BODY_BYTES_MAX],
  ]) as object
}

function softTopicLimits(): object {
  const rows = Object.entries(softTopics).flatMap(([name, { ttlMs, ownerBytesMax }]) => [
    [`${name} ttlMs`, ttlMs],
    [`${name} ownerBytesMax`, ownerBytesMax],
  ])
  return Object.fromEntries(rows) as object
}

/**
 * Limits that a controller reads from its configuration. Only configuration.md contains their
 * values, because the configuration always replaces the values in the code.
 */
const configured: Readonly<Record<string, string>> = {
  'src/api/http/limits.ts bodyBytesMax': 'api.bodyBytesMax',
  'src/api/http/limits.ts handlerTimeoutMs': 'api.requestTimeoutMs',
  'src/api/sessions/limits.ts sessionTimeoutMs': 'api.sessionTimeoutMs',
  'src/api/sessions/limits.ts accessTokenMs': 'oidc.accessTokenMs',
  'src/api/sessions/limits.ts refreshTokenMs': 'oidc.refreshTokenMs',
  'src/api/sessions/limits.ts oidcSessionMsMax': 'oidc.sessionMaxMs',
  'src/api/sessions/limits.ts staleSessionMsMax': 'api.staleSessionMaxMs',
  'src/api/http/limits.ts connectionsMax': 'limits.connectionsMax',
  'src/api/http/limits.ts connectionsPerSourceMax': 'limits.connectionsPerSourceMax',
  'src/api/http/limits.ts waitingRequestsMax': 'limits.waitingRequestsMax',
  'src/api/sessions/limits.ts logInsMax': 'limits.logInsMax',
  'src/api/sessions/limits.ts passwordHashesWaitingMax': 'limits.logInsMax',
  'src/api/enrollment/limits.ts identityEnrollmentMs': 'enrollment.identityMinutes',
  'src/api/enrollment/limits.ts routerEnrollmentMs': 'enrollment.routerMinutes',
  'src/api/enrollment/limits.ts enrolledCertificateMs': 'enrollment.certificateDays',
  'src/api/enrollment/limits.ts sessionCertificateMs': 'enrollment.sessionCertificateMinutes',
  'src/cluster/cluster-node-deps.ts proposeTimeoutMs': 'limits.writeTimeoutMs',
  'src/cluster/cluster-node-deps.ts outstandingMax': 'limits.outstandingWritesMax',
  'src/cluster/state-transfer/log-retention.ts entries': 'log.retainEntries',
  'src/cluster/state-transfer/log-retention.ts bytes': 'log.retainBytes',
  'src/cluster/state-transfer/log-retention.ts catchUpBytes': 'log.catchUpBytes',
  'src/cluster/state-transfer/snapshot-sender.ts bytesPerSecond': 'cluster.snapshotBytesPerSecond',
  'src/raft/node-start.ts tickMs': 'raft.tickMs',
  'src/raft/options.ts heartbeatTicks': 'raft.heartbeatMs',
  'src/raft/options.ts electionTimeoutTicks': 'raft.electionTimeoutMs',
  'src/raft/options.ts electionTimeoutTicksMax': 'raft.electionTimeoutMaxMs',
}

/**
 * Limits that have the name of an option and another meaning: the time for a whole request to
 * arrive, and the ticks of soft state.
 */
const namesakes: ReadonlySet<string> = new Set([
  'src/api/http/limits.ts requestTimeoutMs',
  'src/cluster/soft-state/soft-state.ts tickMs',
])

/** The comment above the definition of a limit in its file; empty if there is none. */
function meaningOf(source: string, name: string): string {
  const word = name.slice(name.lastIndexOf(' ') + 1)
  const definition = new RegExp(
    String.raw`/\*\*((?:(?!\*/)[^])*)\*/\s*(?://[^\n]*\s*)*(?:export )?(?:const |readonly )?${word}\??\s*[:=,]`,
  )
  const comment = definition.exec(source)?.[1] ?? ''
  const sentences = comment.replaceAll(/^\s*\* ?/gm, '').replaceAll(/\s+/g, ' ')
  return sentences
    .replaceAll(/\{@link ([^}]+)\}/g, '`$1`')
    .replaceAll('|', String.raw`\|`)
    .trim()
}

function rows(file: string, limits: object): string {
  const commented = file.replace('soft-topics', 'soft-state')
  const source = readFileSync(join(import.meta.dirname, '..', commented), 'utf8')
  return Object.entries(limits)
    .map(([name, value]) => {
      const option = configured[`${file} ${name}`]
      const figure = Number(value).toLocaleString('en-US')
      const shown = option === undefined ? figure : `option \`${option}\``
      return `| \`${name}\` | ${shown} | ${meaningOf(source, name)} |`.replace('|  |', '| |')
    })
    .join('\n')
}

function text(): string {
  const parts = Object.entries(tables).map(
    ([file, limits]) =>
      `## \`${file}\`\n\n| limit | default | meaning |\n|---|---|---|\n${rows(file, limits)}\n`,
  )
  return `# Limits in the code

For developers, and for operators who look up a limit that a log line or another page names. Everything that can grow has a limit, and the name of a limit ends
with its unit. Limits that an operator can change are options, which [configuration.md](../reference/configuration.md) lists for controllers, and [router-configuration.md](../reference/router-configuration.md) for routers; the others are part of the program.
[Limits that a caller can meet](../reference/limits.md) lists the limits that users need to know. A *source* is an IPv4 address or a /64 network of IPv6.

At a limit, a client gets 413 for a body, 431 for headers, 400 for a filter, 429 \`SERVER_TOO_MANY_REQUESTS\` with \`Retry-After\` for too
many requests, and 503 \`TIMEOUT\` for a request that takes too long. A page size above the maximum counts as the maximum, without an error,
as in OpenZiti. The controller never truncates a complete list (\`limit=-1\`, \`limit none\`). The controller builds such a list in steps, and other requests run between the
steps. The controller refuses a list with more rows or bytes than allowed with 400 and field \`limit\`; callers who are not administrators have a lower limit.
Each row of the list shows the state at the time of its step, so a concurrent change may appear in some rows only, as it may between two pages.

A controller refuses a message of a router that exceeds the limits on bytes or elements before it decodes the message. Each field on the wire counts as one element, and each byte of a packed list as one. A nested message counts
four more, plus its elements or, if that is more, the number of fields of its schema. The check takes at most a few milliseconds of the main thread. The largest message within these bounds (34,000 clients) takes some 185 ms in
total on a 2-core virtual machine, at most 15 ms in one turn of the event loop, and other work runs between these turns (\`node bench/router-frames.ts\`).

${parts.join('\n')}`
}

test('docs/internals/limits.md contains the values that the limits have in the code', () => {
  if (process.env['FLOTILLA_RECORD'] === '1') writeFileSync(page, text())
  expect(readFileSync(page, 'utf8'), 'FLOTILLA_RECORD=1 records it').toBe(text())
})

/**
 * Limits that callers can reach: subject, limited quantity, the file and name of the value, and the
 * response at the limit.
 */
const callerLimits: readonly (readonly [string, string, string, string])[] = [
  [
    'Requests',
    'Body of a request',
    'src/api/http/limits.ts bodyBytesMax',
    '413 `REQUEST_ENTITY_TOO_LARGE`',
  ],
  ['Requests', 'Depth of a JSON body', 'src/api/http/limits.ts bodyDepthMax', '400'],
  ['Requests', 'Headers of a request', 'src/api/http/limits.ts headerBytesMax', '431'],
  [
    'Requests',
    'Time in which the headers must arrive',
    'src/api/http/limits.ts headersTimeoutMs',
    '408, the connection closes',
  ],
  [
    'Requests',
    'Time in which the whole request must arrive',
    'src/api/http/limits.ts requestTimeoutMs',
    '408, the connection closes',
  ],
  ['Requests', 'Time until the answer', 'src/api/http/limits.ts handlerTimeoutMs', '503 `TIMEOUT`'],
  [
    'Requests',
    'Requests that a client sends on one connection before it reads the first answer',
    'src/api/http/limits.ts pipelinedRequestsMax',
    'the connection closes',
  ],
  [
    'Requests',
    'Time that a connection may be idle',
    'src/api/http/limits.ts keepAliveTimeoutMs',
    'the connection closes',
  ],
  [
    'Connections',
    'Open connections of a listener',
    'src/api/http/limits.ts connectionsMax',
    'the connection closes',
  ],
  [
    'Connections',
    'Open connections from one source to a listener',
    'src/api/http/limits.ts connectionsPerSourceMax',
    'the connection closes',
  ],
  ['Lists', 'Records on a page, if `limit` is absent', 'src/fsm/query/list.ts limitDefault', '–'],
  ['Lists', 'Records on a page', 'src/fsm/query/list.ts limitMax', 'the page is shorter'],
  [
    'Lists',
    'Value of `offset`',
    'src/fsm/query/list.ts offsetMax',
    'a larger value is treated as this value',
  ],
  [
    'Lists',
    'Records in a whole list (`limit=-1`)',
    'src/fsm/query/list.ts wholeListRowsMax',
    '400, field `limit`',
  ],
  [
    'Lists',
    'Bytes of a whole list that an administrator requests',
    'src/api/http/limits.ts longListBytesMax',
    '400, field `limit`',
  ],
  [
    'Lists',
    'Bytes of a whole list that another caller requests',
    'src/api/http/limits.ts longListBytesOfOthersMax',
    '400, field `limit`',
  ],
  [
    'Lists',
    'Requests for a whole list in progress at the same time',
    'src/api/http/limits.ts longListsMax',
    '429',
  ],
  [
    'Filters',
    'Characters in a filter of an administrator',
    'src/fsm/query/scanner.ts charactersMax',
    '400 `INVALID_FILTER`',
  ],
  [
    'Filters',
    'Characters in a filter of another caller',
    'src/fsm/query/scanner.ts charactersOfOthersMax',
    '400 `INVALID_FILTER`',
  ],
  ['Filters', 'Terms in a filter', 'src/fsm/query/scanner.ts termsMax', '400 `INVALID_FILTER`'],
  [
    'Writes',
    'Writes of one identity to its own records, per minute and controller',
    'src/api/http/caller-write-limiter.ts identityWritesMax',
    '429',
  ],
  [
    'Writes',
    'Writes of one identity to its own records of one kind, per minute and controller',
    'src/api/http/caller-write-limiter.ts identityWritesOfKindMax',
    '429',
  ],
  [
    'Writes',
    'Writes in progress through one controller',
    'src/cluster/cluster-node-deps.ts outstandingMax',
    '429',
  ],
  [
    'Writes',
    'Time for which the cluster remembers a `net-request-id`',
    'src/fsm/records/deduplication.ts requestIdRetentionMs',
    '409 `REQUEST_ID_EXPIRED`',
  ],
  [
    'Records',
    'Characters in a name',
    'src/entities/fields.ts nameCharactersMax',
    '400, names the field',
  ],
  [
    'Records',
    'Characters in another string that has no separate limit',
    'src/entities/fields.ts textCharactersMax',
    '400, names the field',
  ],
  [
    'Records',
    'Role attributes on a record',
    'src/entities/fields.ts attributesMax',
    '400, names the field',
  ],
  ['Records', 'Roles in a policy', 'src/entities/fields.ts rolesMax', '400, names the field'],
  [
    'Records',
    'Bytes of all tags of a record',
    'src/entities/fields.ts tagsBytesMax',
    '400, field `tags`',
  ],
  [
    'Log-in',
    'Log-ins in progress at one controller',
    'src/api/sessions/limits.ts logInsMax',
    '429',
  ],
  [
    'Log-in',
    'Failed log-ins with one user name from one source before pauses begin',
    'src/api/sessions/limits.ts logInFailuresMax',
    '429',
  ],
  [
    'Log-in',
    'Longest pause after failed log-ins',
    'src/api/sessions/limits.ts logInPauseMsMax',
    '429',
  ],
  [
    'Log-in',
    'Wrong second-factor codes of an identity before pauses begin',
    'src/fsm/apply/authentication.ts attemptsMax',
    '429',
  ],
  [
    'Log-in',
    'Longest pause after wrong codes',
    'src/fsm/apply/authentication.ts pauseMsMax',
    '429',
  ],
  [
    'Log-in',
    'Characters of an external JWT',
    'src/auth/tokens/unverified-token.ts charactersMax',
    '401',
  ],
  [
    'Log-in',
    'Time in which a device code can be confirmed',
    'src/auth/oidc/device-log-ins.ts deviceLogInMs',
    '`expired_token`',
  ],
  [
    'Log-in',
    'Requests of one source for log-ins at identity providers, per minute',
    'src/api/signers/limits.ts providerLogInsOfOneMax',
    '429',
  ],
  [
    'Log-in',
    'Discoveries and token tests of one administrator, per minute',
    'src/api/signers/limits.ts signerTestsOfOneMax',
    '429',
  ],
  [
    'Sessions',
    'API sessions of an identity',
    'src/fsm/sessions/session.ts apiSessionsPerIdentityMax',
    '429',
  ],
  ['Sessions', 'API sessions of the cluster', 'src/fsm/sessions/session.ts apiSessionsMax', '429'],
  [
    'Sessions',
    'Service sessions of an identity',
    'src/fsm/sessions/service-session.ts serviceSessionsPerIdentityMax',
    '429',
  ],
  [
    'Sessions',
    'Time after which an unused session of the REST log-in ends',
    'src/api/sessions/limits.ts sessionTimeoutMs',
    '401',
  ],
  [
    'Hosting',
    'Terminators of an identity',
    'src/fsm/services/hosted-terminator.ts terminatorsPerIdentityMax',
    'refused',
  ],
  [
    'Hosting',
    'Terminators of a router',
    'src/fsm/services/hosted-terminator.ts terminatorsPerRouterMax',
    'refused',
  ],
  ['Events', 'Event streams open at one controller', 'src/events/limits.ts eventStreamsMax', '429'],
  [
    'Events',
    'Event streams open for one caller',
    'src/events/limits.ts eventStreamsPerCallerMax',
    '429',
  ],
  [
    'Events',
    'Number of the newest events after which a client can resume a stream, at most',
    'src/events/limits.ts eventsKeptMax',
    'the stream reports that events are missing',
  ],
  [
    'Preview',
    'Changes in one access preview',
    'src/api/access/preview-schema.ts previewChangesMax',
    '400',
  ],
]

/** A value with its unit in readable form; for an option, a reference to the page of options. */
function callerFigure(place: string): string {
  const option = configured[place]
  if (option !== undefined) return `option \`${option}\``
  const [file = '', name = ''] = place.split(' ')
  const value = Number((tables[file] as Readonly<Record<string, number>>)[name])
  if (Number.isNaN(value)) throw new Error(`${place} has no figure`)
  if (/Ms(Max|Min)?$/.test(name))
    return value % 60_000 === 0 ? `${value / 60_000} min` : `${value / 1000} s`
  if (!/Bytes/.test(name)) return value.toLocaleString('en-US')
  return value % 1024 ** 2 === 0 ? `${value / 1024 ** 2} MiB` : `${value / 1024} KiB`
}

function callersText(): string {
  const subjects = Map.groupBy(callerLimits, ([subject]) => subject)
  const parts = [...subjects].map(([subject, limits]) => {
    const shown = limits.map(([, what, place, answer]) => {
      return `| ${what} | ${callerFigure(place)} | ${answer} |`
    })
    return `## ${subject}\n\n| what | limit | at the limit |\n|---|---|---|\n${shown.join('\n')}\n`
  })
  return `# Limits that a caller can meet

For developers of clients and for administrators. You can change limits that are options in the [configuration of a controller](configuration.md); all other limits are part of the program.
A *source* is an IPv4 address or a /64 network of IPv6. Errors with the status 429 or 503 contain \`Retry-After\`. [Limits in the code](../internals/limits.md) lists every limit, also those between controllers and routers.

${parts.join('\n')}`
}

test('docs/reference/limits.md lists the limits that matter to callers, with their values in the code', () => {
  if (process.env['FLOTILLA_RECORD'] === '1') writeFileSync(callersPage, callersText())
  expect(readFileSync(callersPage, 'utf8'), 'FLOTILLA_RECORD=1 records it').toBe(callersText())
})

/** Defaults of options by key, from the generated table. */
function optionDefaults(): Map<string, string> {
  const table = readFileSync(join(docs, 'reference/configuration.md'), 'utf8')
  const rows = table.matchAll(/^\| `([a-z]+(?:\.[A-Za-z]+)+)` \|[^|]*\| `?([^|`]*)`? \|/gm)
  return new Map([...rows].map(([, key = '', value = '']) => [key, value.trim()]))
}

test('a limit has the name of an option only if the option sets it, except for the namesakes that this file lists', () => {
  const options = optionDefaults()
  expect(options.get('log.lowSpaceBytes')).toBe('67108864')
  for (const [place, option] of Object.entries(configured)) {
    const [file = '', name = ''] = place.split(' ')
    expect(Object.keys(tables[file] ?? {}), place).toContain(name)
    expect([...options.keys()], place).toContain(option)
  }
  // A limit with the name of an option must be that option, not a second value for it.
  const names = new Set([...options.keys()].map((key) => key.split('.').at(-1)))
  const isSecondFigure = (place: string, name: string): boolean =>
    names.has(name) && !(place in configured) && !namesakes.has(place)
  const doubled = Object.entries(tables).flatMap(([file, limits]) =>
    Object.keys(limits).filter((name) => isSecondFigure(`${file} ${name}`, name)),
  )
  expect(doubled).toEqual([])
})

const units: Readonly<Record<string, number>> = {
  '': 1,
  ms: 1,
  bytes: 1,
  s: 1000,
  min: 60_000,
  minutes: 60_000,
  h: 3_600_000,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
}

test('a value that a document gives with the name of an option is the default value of the option', () => {
  const options = optionDefaults()
  const wrong: string[] = []
  let seen = 0
  for (const name of pageNames()) {
    const lines = pageText(name)
    const given = lines.matchAll(
      /`([a-z]+\.[A-Za-z]+)`[ \n](?:\((?:default )?|= ?)([0-9][0-9,]*)(?! to )(?: ([A-Za-z]+))?\b/g,
    )
    for (const [text, key = '', figure = '', unit = ''] of given) {
      const value = options.get(key)
      if (value === undefined) continue
      seen += 1
      const inUnit = Number(figure.replaceAll(',', '')) * (units[unit] ?? NaN)
      if (inUnit !== Number(value)) wrong.push(`${name}: ${text} and ${value}`)
    }
  }
  expect(wrong).toEqual([])
  expect(seen).toBeGreaterThan(0)
})
