import type { ScheduledBackups } from '../../api/backups/backup-control.ts'
import type { ClusterStatus, ListedMember, MemberStatus } from '../../api/cluster/cluster-status.ts'
import type { UpgradeStatus } from '../../api/cluster/upgrade-status.ts'
import type { LogLevelState } from '../../api/host/log-level-control.ts'
import type { ChangePlan, Invitation, TicketView } from '../../ports/membership.ts'
import {
  anything,
  flagShape,
  listOf,
  nullable,
  numberShape,
  objectOf,
  optional,
  type Shape,
  textShape,
  timeShape,
} from './answer-shape.ts'

const number = optional(numberShape)
const flag = optional(flagShape)
const texts = listOf(textShape)

const memberStatus = objectOf<MemberStatus>({
  id: textShape,
  address: textShape,
  version: textShape,
  role: textShape,
  term: number,
  commit: number,
  applied: number,
  persisted: number,
  digestIndex: number,
  digest: textShape,
  lastContactMs: nullable(numberShape),
  isFailing: flag,
  featureLevel: number,
})

export const clusterStatusShape = objectOf<ClusterStatus>({
  clusterId: textShape,
  generation: number,
  selfId: textShape,
  leaderId: nullable(textShape),
  members: listOf(memberStatus),
  failureTolerance: number,
  nextRisk: textShape,
  featureLevel: number,
  nextFeatureLevel: optional(objectOf({ level: numberShape, waitsFor: texts })),
  alarms: listOf(objectOf({ code: textShape, text: textShape, sinceMs: number, isCritical: flag })),
})

export const listedMembersShape = listOf(
  objectOf<ListedMember>({
    id: textShape,
    address: textShape,
    ctrlAddress: optional(textShape),
    voter: flagShape,
    leader: flagShape,
    connected: flagShape,
    version: textShape,
  }),
)

export const upgradeStatusShape: Shape<UpgradeStatus> = objectOf({
  featureLevel: numberShape,
  nextFeatureLevel: nullable(numberShape),
  state: textShape,
  advice: textShape,
  notNow: textShape,
  members: listOf(
    objectOf({
      id: textShape,
      isVoter: flagShape,
      isConnected: flagShape,
      version: textShape,
      featureLevel: numberShape,
      holdsBack: flag,
      action: textShape,
    }),
  ),
}) as Shape<UpgradeStatus>

export const changePlanShape = objectOf<ChangePlan>({
  change: anything as Shape<ChangePlan['change']>,
  isNeeded: flagShape,
  votersBefore: texts,
  votersAfter: texts,
  toleranceBefore: numberShape,
  toleranceAfter: numberShape,
  warnings: texts,
  confirmation: nullable(textShape),
})

export const invitationShape = objectOf<Invitation>({
  ticket: textShape,
  id: textShape,
  expiresAtMs: timeShape,
})

export const ticketsShape = listOf(
  objectOf<TicketView>({
    id: textShape,
    isVoter: flagShape,
    createdAtMs: timeShape,
    expiresAtMs: timeShape,
    usedBy: nullable(textShape),
  }),
)

export const scheduledBackupsShape = objectOf<ScheduledBackups>({
  isScheduled: flagShape,
  backups: listOf(objectOf({ name: textShape, takenAtMs: timeShape })),
})

export const logLevelShape = objectOf<LogLevelState>({ level: textShape, configured: textShape })

export const resetLogTimeShape = objectOf<{ readonly aheadMs: number; readonly logTime: string }>({
  aheadMs: numberShape,
  logTime: textShape,
})

export const recoveredAdminShape = objectOf<{
  readonly name: string
  readonly username: string
  readonly authPolicyId: string
}>({ name: textShape, username: textShape, authPolicyId: textShape })
