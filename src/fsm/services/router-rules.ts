import type { EdgeRouterPolicy } from '../../entities/kinds/edge-router-policy.ts'
import { identity, type Identity } from '../../entities/kinds/identity.ts'
import type { Router } from '../../entities/kinds/router.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { gainsCertificateNames } from '../apply/actor-rights.ts'
import { fieldFaultOutcome, refusedOutcome } from '../apply/outcome.ts'
import { withdrawEnrollments } from '../apply/withdraw-enrollments.ts'
import type { State } from '../records/state.ts'
import { checkConfigTypes } from './configs-rules.ts'
import type {
  WriteConsequences,
  KindRules,
  ValidatedWrite,
  CompletedWrite,
} from '../apply/command-context.ts'

/**
 * The rules apply to all kinds of routers in the table, although only edge routers can have a
 * tunnel.
 */
const common = { afterWrite: followRouter, afterDelete: removeTunneler } as const

export const edgeRouterRules: KindRules<Router> = { ...common, judgeWrite: judgeRouter }
export const fabricRouterRules: KindRules<Router> = { ...common, judgeWrite: judgeRouter }
export const transitRouterRules: KindRules<Router> = { ...common, judgeWrite: judgeTransitRouter }

function judgeTransitRouter(state: State, write: ValidatedWrite<Router>): Outcome | null {
  const { before } = write
  if (before !== undefined && !before.isTransit) return refusedOutcome('CAN_NOT_UPDATE_ROUTER')
  return judgeRouter(state, write)
}

function judgeRouter(state: State, write: ValidatedWrite<Router>): Outcome | null {
  return checkConfigTypes(state, write, 'router') ?? judgeTunneler(state, write)
}

function policyNameOf(id: string): string {
  return `edge-router-${id}-system`
}

/**
 * Checks a write of a router with a tunnel. Such a router has an identity, and a system edge router
 * policy that allows the identity to use the router.
 * @returns the refusal if the identity or policy would conflict with other records; otherwise null.
 */
function judgeTunneler(state: State, { id, after }: ValidatedWrite<Router>): Outcome | null {
  if (after.isTunnelerEnabled !== true) return null
  const { name = '' } = after
  const namesake = state.table('identity').indexes.owner('name', name)
  if (isOther(namesake, id)) {
    const reason = identity.fields['name']?.unique?.replace('{value}', () => name) ?? ''
    return fieldFaultOutcome({ field: 'name', reason, value: name })
  }
  const policyName = policyNameOf(id)
  if (isOther(state.table('edgeRouterPolicy').indexes.owner('name', policyName), id)) {
    const reason = `the policy of the router would be called ${policyName}, as another one is`
    return fieldFaultOutcome({ field: 'isTunnelerEnabled', reason })
  }
  const held = state.get('identity', id)
  const policy = state.get('edgeRouterPolicy', id)
  if ((held !== undefined && !isOwned(held)) || (policy !== undefined && !isOwned(policy))) {
    const reason = 'the id of the router is that of a record which is not its own'
    return fieldFaultOutcome({ field: 'isTunnelerEnabled', reason })
  }
  return null
}

function isOther(owner: string | undefined, id: string): boolean {
  return owner !== undefined && owner !== id
}

/** Whether the record was created for the tunnel of a router, not by a caller. */
function isOwned(record: EdgeRouterPolicy | Identity): boolean {
  return 'typeId' in record ? record.typeId === 'Router' : record.isSystem
}

function followRouter(written: CompletedWrite<Router>, consequences: WriteConsequences): void {
  keepTunneler(written, consequences)
  const { before, after } = written
  // @guard enrollments-read-before-a-promotion--names
  if (before === undefined || !gainsCertificateNames(before, after)) return
  withdrawEnrollments('edgeRouterId', after.id, consequences)
  withdrawEnrollments('transitRouterId', after.id, consequences)
}

function keepTunneler(
  { before, after }: CompletedWrite<Router>,
  consequences: WriteConsequences,
): void {
  if (!after.isTunnelerEnabled) {
    if (before?.isTunnelerEnabled === true) removeTunneler(after, consequences)
    return
  }
  const { id, name } = after
  const { state } = consequences
  const known = state.get('identity', id)
  if (known === undefined) {
    consequences.put('identity', id, { name, typeId: 'Router' })
  } else if (known.name !== name) {
    consequences.put('identity', id, { ...known, name })
  }
  if (state.get('edgeRouterPolicy', id) !== undefined) return
  consequences.put('edgeRouterPolicy', id, {
    name: policyNameOf(id),
    semantic: 'AnyOf',
    edgeRouterRoles: [`@${id}`],
    identityRoles: [`@${id}`],
    isSystem: true,
  })
}

function removeTunneler({ id }: Router, consequences: WriteConsequences): void {
  for (const kind of ['edgeRouterPolicy', 'identity'] as const) {
    const record = consequences.state.get(kind, id)
    if (record !== undefined && isOwned(record)) consequences.remove(kind, id)
  }
}
