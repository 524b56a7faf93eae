import { CommandKind } from '../../proto/gen/command_pb.ts'
import type { Entity } from '../entities/define.ts'
import type { Operation as EntityOperation } from '../entities/operations.ts'
import { normalise } from '../entities/normalise.ts'
import type { RequestMode } from '../entities/schema.ts'
import { assert } from '../lib/assert.ts'
import type { JsonObject } from '../lib/canonical-json.ts'
import { newShortId } from '../lib/random.ts'
import type { ListResult } from '../ports/state-view.ts'
import type { Call, Caller } from './call.ts'
import { createdAnswer, detailAnswer, emptyAnswer, listAnswer } from './envelope.ts'
import type { Answer } from './envelope.ts'
import { foundOrConfirmed } from './not-found.ts'
import type { ApiParts } from './parts.ts'
import { listQueryOf } from './query-parameters.ts'
import type { Writer } from './writes.ts'

export type Handler = (call: Call) => Answer | Promise<Answer>

/** One handler a shape, for every descriptor. */
export class ResourceHandlers {
  readonly #parts: ApiParts
  readonly #writer: Writer

  constructor(parts: ApiParts, writer: Writer) {
    this.#parts = parts
    this.#writer = writer
  }

  of(operation: EntityOperation): Handler {
    const { entity, api } = operation
    // On the client API a caller sees only what its policies reach, administrators included.
    const isScoped = api === 'client'
    switch (operation.shape) {
      case 'list':
        return (call) => this.#list(call, entity, isScoped)
      case 'detail':
        return (call) => this.#detail(call, entity, isScoped)
      case 'subList':
        return (call) => this.#subList(call, operation)
      case 'create':
        return (call) => this.#create(call, entity)
      case 'replace':
        return (call) => this.#change(call, entity, 'replace')
      case 'patch':
        return (call) => this.#change(call, entity, 'patch')
      case 'delete':
        return (call) => this.#delete(call, entity)
    }
  }

  #list(call: Call, entity: Entity, isScoped: boolean): Answer {
    const { state } = this.#parts
    const query = listQueryOf(call)
    const { identity } = callerOf(call)
    const found = isScoped
      ? state.accessibleServices(identity.id, query)
      : state.list(entity.name, query)
    return this.#listed(call, entity, found)
  }

  #subList(call: Call, operation: EntityOperation): Answer | Promise<Answer> {
    const { list, entity } = operation
    assert(list !== null, 'a sub-list operation has a list')
    const id = call.param('id')
    return foundOrConfirmed(this.#parts, call, named(entity, id), () => {
      const found = this.#parts.state.subList(entity.name, id, list.key, listQueryOf(call))
      return found === null ? null : this.#listed(call, list.of, found)
    })
  }

  #listed(call: Call, entity: Entity, found: ListResult): Answer {
    const { state } = this.#parts
    const callerId = callerOf(call).identity.id
    return listAnswer(
      found.records.map((record) => state.detail(entity.name, record, callerId)),
      { limit: found.limit, offset: found.offset, totalCount: found.totalCount },
      state.filterableFields(entity.name),
    )
  }

  #detail(call: Call, entity: Entity, isScoped: boolean): Answer | Promise<Answer> {
    const { state } = this.#parts
    const id = call.param('id')
    const callerId = callerOf(call).identity.id
    return foundOrConfirmed(this.#parts, call, named(entity, id), () => {
      const record = state.get(entity.name, id)
      if (record === undefined) return null
      if (isScoped && state.permissions(callerId, id).length === 0) return null
      return detailAnswer(state.detail(entity.name, record, callerId))
    })
  }

  async #create(call: Call, entity: Entity): Promise<Answer> {
    const { fields, ignoredFields } = normalise(entity, 'create', bodyOf(call))
    const kind = CommandKind.ENTITY_CREATE
    const id = await this.#writer.entity(call, kind, entity.name, newShortId(), fields)
    return createdAnswer(entity.collection, id, ignoredFields)
  }

  async #change(call: Call, entity: Entity, mode: Exclude<RequestMode, 'create'>): Promise<Answer> {
    const { fields, ignoredFields } = normalise(entity, mode, bodyOf(call))
    const kind = mode === 'patch' ? CommandKind.ENTITY_PATCH : CommandKind.ENTITY_REPLACE
    await this.#writer.entity(call, kind, entity.name, call.param('id'), fields)
    return emptyAnswer(ignoredFields)
  }

  async #delete(call: Call, entity: Entity): Promise<Answer> {
    await this.#writer.deleteEntity(call, entity.name, call.param('id'))
    return emptyAnswer()
  }
}

/** Operations of a descriptor always ask for a session, so there is a caller. */
function callerOf(call: Call): Caller {
  assert(call.caller !== null, 'an operation behind a session has a caller')
  return call.caller
}

function bodyOf(call: Call): JsonObject {
  const { body } = call
  assert(body !== null && typeof body === 'object', 'a body that its schema accepted is an object')
  return body as JsonObject
}

function named(entity: Entity, id: string): string {
  return `${entity.name} with id ${id}`
}
