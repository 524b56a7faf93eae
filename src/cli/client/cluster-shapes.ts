import type { ScheduledBackups } from '../../api/backups/backup-control.ts'
import type {
  ClusterStatus,
  OpenZitiMember,
  MemberStatus,
} from '../../api/cluster/cluster-status.ts'
import type { UpgradeStatus } from '../../api/cluster/upgrade-status.ts'
import type { LogLevelState } from '../../api/host/log-level-control.ts'
import type { ChangePlan, NewJoinTicket, TicketView } from '../../ports/membership.ts'
import {
  unknownShape,
  booleanShape,
  listShape,
  nullableShape,
  numberShape,
  objectShape,
  optionalShape,
  type ShapeCheck,
  textShape,
  timeShape,
} from './response-shape.ts'

const number = optionalShape(numberShape)
const flag = optionalShape(booleanShape)
const texts = listShape(textShape)

const memberStatus = objectShape<MemberStatus>({
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
  lastContactMs: nullableShape(numberShape),
  isFailing: flag,
  featureLevel: number,
})

export const clusterStatusShape = objectShape<ClusterStatus>({
  clusterId: textShape,
  generation: number,
  selfId: textShape,
  leaderId: nullableShape(textShape),
  members: listShape(memberStatus),
  failureTolerance: number,
  failureToleranceMax: number,
  nextRisk: textShape,
  featureLevel: number,
  nextFeatureLevel: optionalShape(objectShape({ level: numberShape, waitsFor: texts })),
  alarms: listShape(
    objectShape({ code: textShape, text: textShape, sinceMs: number, isCritical: flag }),
  ),
})

export const listedMembersShape = listShape(
  objectShape<OpenZitiMember>({
    id: textShape,
    address: textShape,
    ctrlAddress: optionalShape(textShape),
    voter: booleanShape,
    leader: booleanShape,
    connected: booleanShape,
    version: textShape,
  }),
)

export const upgradeStatusShape: ShapeCheck<UpgradeStatus> = objectShape({
  featureLevel: numberShape,
  nextFeatureLevel: nullableShape(numberShape),
  state: textShape,
  advice: textShape,
  notNow: textShape,
  members: listShape(
    objectShape({
      id: textShape,
      isVoter: booleanShape,
      isConnected: booleanShape,
      version: textShape,
      featureLevel: numberShape,
      holdsBack: flag,
      action: textShape,
    }),
  ),
}) as ShapeCheck<UpgradeStatus>

export const changePlanShape = objectShape<ChangePlan>({
  change: unknownShape as ShapeCheck<ChangePlan['change']>,
  isNeeded: booleanShape,
  votersBefore: texts,
  votersAfter: texts,
  toleranceBefore: numberShape,
  toleranceAfter: numberShape,
  warnings: texts,
  confirmation: nullableShape(textShape),
})

export const newJoinTicketShape = objectShape<NewJoinTicket>({
  ticket: textShape,
  id: textShape,
  expiresAtMs: timeShape,
})

export const ticketsShape = listShape(
  objectShape<TicketView>({
    id: textShape,
    isVoter: booleanShape,
    createdAtMs: timeShape,
    expiresAtMs: timeShape,
    usedBy: nullableShape(textShape),
  }),
)

export const scheduledBackupsShape = objectShape<ScheduledBackups>({
  isScheduled: booleanShape,
  backups: listShape(objectShape({ name: textShape, takenAtMs: timeShape })),
})

export const logLevelShape = objectShape<LogLevelState>({ level: textShape, configured: textShape })

export const logTimeResetShape = objectShape<{
  readonly aheadMs: number
  readonly logTime: string
}>({
  aheadMs: numberShape,
  logTime: textShape,
})

export const recoveredAdminShape = objectShape<{
  readonly name: string
  readonly username: string
  readonly authPolicyId: string
}>({ name: textShape, username: textShape, authPolicyId: textShape })
