import type { Terminator } from '../../entities/kinds/terminator.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { notFoundOutcome } from '../apply/outcome.ts'
import type { State } from '../records/state.ts'
import type { Consequences, KindRules, AllowedWrite, CompletedWrite } from '../apply/context.ts'

export const terminatorRules: KindRules<Terminator> = {
  judgeWrite: (state, write) => judgeTerminator(state, write, 'service', 'router'),
}

export const fabricTerminatorRules: KindRules<Terminator> = {
  judgeWrite: (state, write) => judgeTerminator(state, write, 'fabricService', 'fabricRouter'),
  afterWrite: markFabricOnly,
}

/** Elsewhere an empty reference is allowed; a terminator must have both service and router. */
function judgeTerminator(
  _state: State,
  { after }: AllowedWrite<Terminator>,
  service: string,
  router: string,
): Outcome | null {
  if ((after.serviceId ?? '') === '') return notFoundOutcome(service, '')
  if ((after.routerId ?? '') === '') return notFoundOutcome(router, '')
  return null
}

/**
 * Marks terminators of a service that is not visible in the other APIs, so that they are not
 * visible there either.
 */
function markFabricOnly(
  { before, after }: CompletedWrite<Terminator>,
  { state, put }: Consequences,
): void {
  if (before !== undefined) return
  const isFabricOnly = state.get('fabricService', after.serviceId)?.isFabricOnly
  if (isFabricOnly === true) put('fabricTerminator', after.id, { ...after, isFabricOnly })
}
