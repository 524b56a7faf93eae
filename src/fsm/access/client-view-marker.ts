import type { AccessMark } from '../../entities/kinds/access-mark.ts'
import { assert } from '../../lib/assert.ts'
import type { CommandContext } from '../apply/command-context.ts'
import type { State } from '../records/state.ts'
import type { AccessEffects } from './access-index.ts'
import type { AccessClass, AccessClassMove } from './access-classes.ts'
import type { AccessClassTransition } from './client-view-changes.ts'

const ofIdentity = (id: string): string => `i:${id}`
const ofClass = (key: string): string => `c:${key}`

function markOf(state: State, id: string): AccessMark | undefined {
  return state.get('accessMark', id)
}

/**
 * Log time of the last stored change to the client view (the services that a client sees) of an
 * active identity; 0: no change is stored. The change may be older than the identity's sessions.
 */
function movedAt(state: State, identityId: string, key: string): number {
  const own = markOf(state, ofIdentity(identityId))
  const shared = markOf(state, ofClass(key))
  const counts = shared !== undefined && shared.index > (own?.index ?? 0)
  return Math.max(own?.movedAt ?? 0, counts ? (shared.movedAt ?? 0) : 0)
}

/**
 * Stores a mark (the log time of the change) for each client view that a log entry has changed. If
 * the view of a whole class changes, one mark covers the class: a change to a service that a
 * hundred thousand identities see then does not cost a hundred thousand writes. An identity has a
 * separate mark once its view has changed alone, or once it has joined a class whose earlier marks
 * do not apply to it.
 */
export class ClientViewMarker {
  readonly #state: State
  readonly #context: CommandContext
  readonly #judgement: AccessEffects
  /**
   * Moves by the access class to which they lead. A new class whose members all come from one class
   * may take over the mark of that class.
   */
  readonly #movesTo: ReadonlyMap<string, readonly AccessClassMove[]>
  readonly #leftKeys = new Set<string>()

  constructor(state: State, context: CommandContext, judgement: AccessEffects) {
    this.#state = state
    this.#context = context
    this.#judgement = judgement
    this.#movesTo = Map.groupBy(judgement.moves.moves, ({ key }) => key)
  }

  /**
   * Writes a mark for each client view that the log entry changed. Must be called before the access
   * classes are updated.
   */
  mark(): void {
    const { groups, moves, classes } = this.#judgement
    // All marks are read before any mark is written, so that no group of identities reads a mark
    // that this entry has changed.
    const writes = groups.flatMap((group) => this.#writesOf(group))
    for (const write of writes) write()
    for (const { from } of moves.moves) this.#leftKeys.add(from.key)
    for (const id of moves.left) {
      this.#drop(ofIdentity(id))
      this.#leftKeys.add(classes.of(id)?.key ?? '')
    }
  }

  /**
   * Removes the marks of access classes without members. Must be called after the classes were
   * updated.
   */
  clean(): void {
    for (const key of this.#leftKeys) {
      if (this.#judgement.classes.withKey(key) === undefined) this.#drop(ofClass(key))
    }
  }

  #drop(id: string): void {
    if (markOf(this.#state, id) !== undefined) this.#state.remove('accessMark', id)
  }

  #writesOf(group: AccessClassTransition): (() => void)[] {
    const { from, move } = group
    const { logTimeMs, index } = this.#context
    if (move === null) {
      if (group.moved === 'all') return [() => this.#put(ofClass(from.key), logTimeMs, index)]
      return [...group.moved].map((id) => () => this.#moveAlone(id))
    }
    if (this.#isFresh(move)) return this.#takeOver(group, move)
    return [...group.members].map((id) => {
      const at = this.#hasMoved(group, id) ? logTimeMs : movedAt(this.#state, id, from.key)
      return () => this.#put(ofIdentity(id), at, index)
    })
  }

  #takeOver(group: AccessClassTransition, move: AccessClassMove): (() => void)[] {
    const { logTimeMs, index } = this.#context
    const key = ofClass(move.key)
    if (group.moved === 'all') return [() => this.#put(key, logTimeMs, index)]
    const old = markOf(this.#state, ofClass(group.from.key))
    const alone = [...group.moved].map((id) => () => this.#moveAlone(id))
    if (old === undefined) return alone
    return [() => this.#put(key, old.movedAt ?? 0, old.index), ...alone]
  }

  #hasMoved({ moved }: AccessClassTransition, id: string): boolean {
    return moved === 'all' || moved.has(id)
  }

  #isFresh({ key }: AccessClassMove): boolean {
    if (this.#judgement.classes.withKey(key) !== undefined) return false
    return this.#movesTo.get(key)?.length === 1
  }

  /**
   * Writes a mark for one identity. The mark keeps its index, so that the marks of the identity's
   * access class that counted before still count.
   */
  #moveAlone(id: string): void {
    const own = markOf(this.#state, ofIdentity(id))
    this.#put(ofIdentity(id), this.#context.logTimeMs, own?.index ?? 0)
  }

  #put(id: string, at: number, index: number): void {
    const { logTimeMs, index: revision } = this.#context
    assert(at <= logTimeMs, 'nothing moves after log time')
    this.#state.put('accessMark', {
      id,
      createdAt: markOf(this.#state, id)?.createdAt ?? logTimeMs,
      updatedAt: logTimeMs,
      revision,
      movedAt: at === 0 ? null : at,
      index,
    })
  }
}

/**
 * Time that the operation `service-updates` returns: the last change of the identity's view or the
 * creation of the session, whichever is later.
 */
export function servicesChangedAtMs(
  state: State,
  session: { readonly identityId: string; readonly createdAt: number },
  of: AccessClass | undefined,
): number {
  if (of === undefined) return session.createdAt
  return Math.max(session.createdAt, movedAt(state, session.identityId, of.key))
}
