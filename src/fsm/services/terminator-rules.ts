import type { Terminator } from '../../entities/kinds/terminator.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { notFoundOutcome } from '../apply/outcome.ts'
import type { State } from '../records/state.ts'
import type {
  WriteConsequences,
  KindRules,
  ValidatedWrite,
  CompletedWrite,
} from '../apply/command-context.ts'

export const terminatorRules: KindRules<Terminator> = {
  judgeWrite: (state, write) => judgeTerminator(state, write, 'service', 'router'),
}

export const fabricTerminatorRules: KindRules<Terminator> = {
  judgeWrite: (state, write) => judgeTerminator(state, write, 'fabricService', 'fabricRouter'),
  afterWrite: markFabricOnly,
}

/**
 * A terminator must have both a service and a router, although references may be empty in general.
 */
function judgeTerminator(
  _state: State,
  { after }: ValidatedWrite<Terminator>,
  service: string,
  router: string,
): Outcome | null {
  if ((after.serviceId ?? '') === '') return notFoundOutcome(service, '')
  if ((after.routerId ?? '') === '') return notFoundOutcome(router, '')
  return null
}

/**
 * Marks a new terminator if its service is visible only in the fabric API, so that the terminator
 * is visible only there too.
 */
function markFabricOnly(
  { before, after }: CompletedWrite<Terminator>,
  { state, put }: WriteConsequences,
): void {
  if (before !== undefined) return
  const isFabricOnly = state.get('fabricService', after.serviceId)?.isFabricOnly
  if (isFabricOnly === true) put('fabricTerminator', after.id, { ...after, isFabricOnly })
}
