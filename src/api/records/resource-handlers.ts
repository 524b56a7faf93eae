import { retryWhenRecordsChange } from '../../lib/retry-when-records-change.ts'
import { CommandKind } from '../../../proto/gen/command_pb.ts'
import type { Entity, RequestMode } from '../../entities/define-entity.ts'
import { membersAtLevel } from '../../entities/feature-levels.ts'
import type { EntityOperation as EntityOperation } from '../../entities/operations.ts'
import { disclosesAdminSecret } from '../../fsm/apply/admin-secrets.ts'
import { assert, AssertionError } from '../../lib/assert.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { Problem } from '../../lib/problems.ts'
import { newShortId } from '../../lib/random.ts'
import {
  type ShownConfigTypes,
  type SteppedListing,
  noConfigTypes,
  type ServiceDetailScope,
  type StateView,
} from '../../ports/state-view.ts'
import { requestOrigin, type RequestContext, toWriteRequest } from '../http/request-context.ts'
import type { Caller } from '../../auth/principal/principal.ts'
import { configTypesForList, requestedConfigTypes } from './config-types.ts'
import {
  createdResponse,
  deletedResponse,
  emptyResponse,
  responseFromJsonText,
  type Reply,
} from '../http/responses/envelope.ts'
import type { ListResponseSerializer } from '../http/responses/list-response-serializer.ts'
import { readListQuery } from '../http/query-parameters.ts'
import {
  type DetachedReferences,
  collectReferencesBeforeDelete,
  detachedReferencesAfterDelete,
} from './detached-references.ts'
import type { Handler } from '../http/operation.ts'
import type { WritePreparers } from '../preparers/write-preparers.ts'
import { responseWithEtag, writeIfPreconditionHolds } from './conditional-requests.ts'
import type { ProposalWriter } from '../http/proposal-writer.ts'
import { visibleRecords, type VisibleRecords } from './visible-records.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { PostureService } from '../../ports/posture.ts'
import type { ApiLimits } from '../limits.ts'

interface ResourceHandlersDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly posture: PostureService
  readonly limits: ApiLimits
  readonly writer: ProposalWriter
  readonly lists: ListResponseSerializer
  readonly preparers: WritePreparers
}

/** Creates the handlers for all entity descriptors, one for each shape of operation. */
export class ResourceHandlers {
  readonly #deps: ResourceHandlersDeps
  readonly #writer: ProposalWriter
  readonly #preparers: WritePreparers
  readonly #lists: ListResponseSerializer

  constructor(deps: ResourceHandlersDeps) {
    this.#deps = deps
    this.#writer = deps.writer
    this.#lists = deps.lists
    this.#preparers = deps.preparers
  }

  writing(entity: Entity, mode: RequestMode): Handler<JsonObject> {
    if (mode === 'create') return (call, body) => this.#create(call, entity, body)
    return (call, body) => this.#change(call, entity, mode, body)
  }

  deleting(entity: Entity): Handler {
    return (call) => this.#delete(call, entity)
  }

  /** @throws {AssertionError} at startup, for the same reasons as `visibleRecords`. */
  reading(operation: EntityOperation, shape: 'list' | 'detail' | 'subList'): Handler {
    const visible = visibleRecords(this.#deps.state, operation)
    switch (shape) {
      case 'list':
        return (call) => this.#list(call, operation, visible)
      case 'detail':
        return (call) => this.#detail(call, operation, visible)
      case 'subList':
        return (call) => this.#subList(call, operation, visible)
    }
  }

  #list(
    call: RequestContext,
    { entity, query: known }: EntityOperation,
    visible: VisibleRecords,
  ): Reply | Promise<Reply> {
    const { state, limits } = this.#deps
    const caller = callerOf(call)
    const types = known.includes('configTypes')
      ? configTypesForList(call, caller, state, limits)
      : noConfigTypes
    const listedFor = (identityId: string): Reply | Promise<Reply> => {
      const query = readListQuery(call)
      const listing = state.listing(visible.source(caller.identity.id), query)
      assert(listing !== null, 'only a sub-list may have no parent')
      return this.#listed(call, entity, listing, identityId, types)
    }
    const asIdentity = known.includes('asIdentity') ? call.first('asIdentity') : undefined
    if (asIdentity === undefined) return listedFor(caller.identity.id)
    const what = `identity ${asIdentity.slice(0, 128)}`
    return this.#deps.reads.found(call, what, () => {
      const other = state.get('identity', asIdentity) ?? state.find('identity', 'name', asIdentity)
      return other === undefined ? null : listedFor(other.id)
    })
  }

  #subList(
    call: RequestContext,
    operation: EntityOperation,
    visible: VisibleRecords,
  ): Reply | Promise<Reply> {
    const { state } = this.#deps
    const { list, entity } = operation
    assert(list !== null, 'a sub-list operation has a list')
    const id = call.param('id')
    return this.#deps.reads.found(call, named(entity, id), () => {
      const callerId = callerOf(call).identity.id
      if (!visible.has(callerId, id)) return null
      const source = { of: 'subList', entity: entity.name, id, key: list.key } as const
      const listing = state.listing(source, readListQuery(call))
      return listing === null ? null : this.#listed(call, list.of, listing, callerId)
    })
  }

  #listed(
    call: RequestContext,
    entity: Entity,
    listing: SteppedListing,
    callerId: string,
    types: ShownConfigTypes = noConfigTypes,
  ): Reply | Promise<Reply> {
    const { state } = this.#deps
    const shownFor = this.#shownFor(call, entity, callerId, types)
    return this.#lists.found(call, listing, ({ records, ...pagination }) => ({
      records,
      serialize: state.detailSerializer(entity.name, callerId, shownFor),
      pagination,
      filterableFields: state.filterableFields(entity.name),
    }))
  }

  #detail(
    call: RequestContext,
    { entity, api }: EntityOperation,
    visible: VisibleRecords,
  ): Reply | Promise<Reply> {
    const { state } = this.#deps
    const id = call.param('id')
    const caller = callerOf(call)
    const callerId = caller.identity.id
    // As in OpenZiti, the detail of a service in the management API never includes the data of its
    // configs.
    const types = api === 'client' ? requestedConfigTypes(caller) : noConfigTypes
    return this.#deps.reads.found(call, named(entity, id), () => {
      const record = state.get(entity.name, id)
      if (record === undefined) return null
      if (!visible.has(callerId, id)) return null
      if (!caller.isAdmin && disclosesAdminSecret(state, entity.name, record)) {
        throw new Problem('UNAUTHORIZED', { detail: 'it belongs to an administrator' })
      }
      const shownFor = this.#shownFor(call, entity, callerId, types)
      const text = state.detailSerializer(entity.name, callerId, shownFor)(record)
      return responseWithEtag(call, record, responseFromJsonText(text))
    })
  }

  /**
   * The config types and the posture for which a service is shown; undefined for other kinds, whose
   * details do not depend on them.
   */
  #shownFor(
    call: RequestContext,
    { name }: Entity,
    callerId: string,
    configTypes: ShownConfigTypes,
  ): ServiceDetailScope | undefined {
    if (name !== 'service') return undefined
    const { session, identity } = callerOf(call)
    // The posture belongs to the caller's session, so it does not apply when a service is shown for
    // another identity.
    const { posture, state } = this.#deps
    if (callerId !== identity.id) return { configTypes, posture: posture.ofIdentity(callerId) }
    const now = state.get('apiSession', session.id) ?? session
    return { configTypes, posture: posture.ofSession(now) }
  }

  async #create(call: RequestContext, entity: Entity, body: JsonObject): Promise<Reply> {
    const { id, ignoredFields, warnings } = await this.#write(call, entity, 'create', body)
    return createdResponse(entity.collection, id, ignoredFields, warnings)
  }

  async #change(
    call: RequestContext,
    entity: Entity,
    mode: Exclude<RequestMode, 'create'>,
    body: JsonObject,
  ): Promise<Reply> {
    const { ignoredFields, warnings } = await this.#write(call, entity, mode, body)
    return emptyResponse(ignoredFields, warnings)
  }

  async #write(
    call: RequestContext,
    entity: Entity,
    mode: RequestMode,
    given: JsonObject,
  ): Promise<Written> {
    const id = mode === 'create' ? newIdOf(entity, given) : call.param('id')
    const level = this.#deps.state.featureLevel
    const { known: body, later } = membersAtLevel(entity, given, level)
    const request = toWriteRequest(call)
    return await retryWhenRecordsChange(request, this.#deps.limits, async () => {
      const {
        ignoredFields,
        judgedOn = [],
        warnings = [],
        ...prepared
      } = await this.#preparers.of(entity)(call, mode, body, id)
      const { first = [], also = [] } = prepared
      const { known: fields } = membersAtLevel(entity, prepared.fields, level)
      const kind = kinds[mode]
      const step = { kind, entity: entity.name, id: prepared.id ?? id, fields }
      const record = { entity: entity.name, id }
      const written = await writeIfPreconditionHolds(call, this.#deps.state, record, (matched) => {
        const judged = [...matched, ...judgedOn]
        return first.length + also.length === 0
          ? this.#writer.entity(
              requestOrigin(call, request),
              kind,
              step.entity,
              step.id,
              fields,
              judged,
            )
          : this.#writer.batch(
              requestOrigin(call, request),
              [...first, step, ...also],
              first.length,
              judged,
            )
      })
      return { id: written, ignoredFields: [...ignoredFields, ...later], warnings }
    })
  }

  async #delete(call: RequestContext, entity: Entity): Promise<Reply> {
    const record = { entity: entity.name, id: call.param('id') }
    const { state } = this.#deps
    let naming: readonly DetachedReferences[] = []
    await writeIfPreconditionHolds(call, state, record, (matched) => {
      naming = collectReferencesBeforeDelete(state, entity, record.id)
      return this.#writer.deleteEntity(requestOrigin(call), record.entity, record.id, matched)
    })
    return deletedResponse(detachedReferencesAfterDelete(state, naming))
  }
}

interface Written {
  readonly id: string
  readonly ignoredFields: readonly string[]
  readonly warnings: readonly string[]
}

function newIdOf({ idFrom }: Entity, body: JsonObject): string {
  return idFrom === null ? newShortId() : String(body[idFrom])
}

const kinds = {
  create: CommandKind.ENTITY_CREATE,
  replace: CommandKind.ENTITY_REPLACE,
  patch: CommandKind.ENTITY_PATCH,
} as const satisfies Record<RequestMode, CommandKind>

/**
 * The caller of an operation. The caller always exists, because operations of a descriptor require
 * a session.
 */
function callerOf(call: RequestContext): Caller {
  if (call.caller === null) throw new AssertionError('an operation behind a session has a caller')
  return call.caller
}

function named(entity: Entity, id: string): string {
  return `${entity.name} with id ${id}`
}
