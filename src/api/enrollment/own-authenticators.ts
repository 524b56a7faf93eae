import type { EntityRecord } from '../../lib/entity-record.ts'
import { retryWhenRecordsChange } from '../../lib/retry-when-records-change.ts'
import { CommandKind } from '../../../proto/gen/command_pb.ts'
import type { Authenticator } from '../../entities/kinds/authenticator.ts'
import { detailSchema } from '../../entities/schema.ts'
import { findEntity } from '../../entities/registry.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { Problem } from '../../lib/problems.ts'
import { requestOrigin, type RequestContext, toWriteRequest } from '../http/request-context.ts'
import { detailResponse, emptyResponse, type Reply } from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { prepareOwnAuthenticatorChange } from '../preparers/authenticator.ts'
import { listQueryParameters, readListQuery } from '../http/query-parameters.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'
import {
  ownAuthenticatorPatchSchema,
  ownAuthenticatorUpdateSchema,
} from '../sessions/sessions-schema.ts'
import { requireCaller } from '../sessions/current-identity.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { ApiLimits } from '../limits.ts'
import type { PasswordVerifier } from '../../auth/factors/password-verifier.ts'
import type { PasswordLockout } from '../../auth/factors/password-lockout.ts'
import type { LogInThrottle } from '../../auth/log-in/log-in-throttle.ts'
import type { ProposalWriter } from '../http/proposal-writer.ts'
import {
  type ListResponseSerializer,
  createRowSerializer,
} from '../http/responses/list-response-serializer.ts'
import type { NetworkAuthorities } from '../../auth/certificates/network-authorities.ts'

interface OwnAuthenticatorsDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly authorities: NetworkAuthorities
  readonly limits: ApiLimits
  readonly passwords: PasswordVerifier
  readonly lockout: PasswordLockout
  readonly throttle: LogInThrottle
  readonly writer: ProposalWriter
  readonly lists: ListResponseSerializer
}

const authenticatorDetail = {
  name: 'authenticatorDetail',
  schema: detailSchema(findEntity('authenticator')),
}
const path = '/current-identity/authenticators'

/**
 * Operations on the caller's own credentials. For credentials of other identities the response is
 * 404, even for administrators.
 */
export function ownAuthenticatorOperations(deps: OwnAuthenticatorsDeps): Operation[] {
  const own = new OwnAuthenticators(deps)
  const common = {
    tag: 'currentIdentity',
    apis: ['client', 'management'],
    permission: 'session',
    success: 200,
  } as const
  const change = {
    ...common,
    path: `${path}/{id}`,
    response: { kind: 'detail', schema: emptyBodySchema },
    refusals: [404, 409],
  } as const
  return [
    {
      ...common,
      operationId: 'listCurrentIdentityAuthenticators',
      summary: 'List the authenticators of the current identity',
      method: 'GET',
      path,
      query: listQueryParameters,
      response: { kind: 'list', schema: authenticatorDetail },
      handle: (call) => own.list(call),
    },
    {
      ...common,
      operationId: 'detailCurrentIdentityAuthenticator',
      summary: 'Show an authenticator of the current identity',
      method: 'GET',
      path: `${path}/{id}`,
      response: { kind: 'detail', schema: authenticatorDetail },
      refusals: [404],
      handle: (call) => own.detail(call),
    },
    operationWithBody({
      ...change,
      operationId: 'updateCurrentIdentityAuthenticator',
      summary: 'Update user name and password of the current identity (all fields)',
      method: 'PUT',
      body: { schema: ownAuthenticatorUpdateSchema, isRequired: true },
      handle: (call, body) => own.change(call, 'replace', body),
    }),
    operationWithBody({
      ...change,
      operationId: 'patchCurrentIdentityAuthenticator',
      summary: 'Update user name or password of the current identity',
      method: 'PATCH',
      body: { schema: ownAuthenticatorPatchSchema, isRequired: true },
      handle: (call, body) => own.change(call, 'patch', body),
    }),
  ]
}

class OwnAuthenticators {
  readonly #deps: OwnAuthenticatorsDeps

  constructor(deps: OwnAuthenticatorsDeps) {
    this.#deps = deps
  }

  list(call: RequestContext): Reply | Promise<Reply> {
    const { state } = this.#deps
    const callerId = requireCaller(call).identity.id
    const found = state.subList('identity', callerId, 'authenticators', readListQuery(call))
    if (found === null) throw new Problem('UNAUTHORIZED')
    const { records, ...pagination } = found
    return this.#deps.lists.answer(call, {
      records,
      serialize: createRowSerializer((record) => this.#view(record, callerId)),
      pagination,
      filterableFields: state.filterableFields('authenticator'),
    })
  }

  detail(call: RequestContext): Reply | Promise<Reply> {
    const callerId = requireCaller(call).identity.id
    const id = call.param('id')
    return this.#deps.reads.found(call, named(id), () => {
      const record = this.#find(id, callerId)
      return record === undefined ? null : detailResponse(this.#view(record, callerId))
    })
  }

  /**
   * Changes the user name, the password or both. A new password ends all other sessions of the
   * caller; the session of this request stays valid.
   */
  async change(
    call: RequestContext,
    mode: 'replace' | 'patch',
    body: SchemaValue<typeof ownAuthenticatorPatchSchema.schema>,
  ): Promise<Reply> {
    const { limits } = this.#deps
    const callerId = requireCaller(call).identity.id
    const id = call.param('id')
    // Stores no request id: together with the id, the log would store an unsalted hash of the
    // request, and the request contains the passwords.
    call.metadata.isRepeatable = false
    return await retryWhenRecordsChange(toWriteRequest(call), limits, async () => {
      const own = await this.#deps.reads.latest(() => this.#find(id, callerId))
      if (own === undefined) throw new Problem('NOT_FOUND', { detail: `${named(id)} not found` })
      await this.#prove(call, own, body.currentPassword)
      const { fields, ignoredFields, judgedOn } = await prepareOwnAuthenticatorChange(
        this.#deps,
        call,
        mode,
        body,
        own,
      )
      const kind = mode === 'patch' ? CommandKind.ENTITY_PATCH : CommandKind.ENTITY_REPLACE
      await this.#deps.writer.entity(
        requestOrigin(call),
        kind,
        'authenticator',
        id,
        fields,
        judgedOn,
      )
      return emptyResponse(ignoredFields)
    })
  }

  /**
   * Checks the current password. Wrong attempts count like failed log-ins.
   * @throws {Problem} CAN_NOT_UPDATE_AUTHENTICATOR if the authenticator is no password;
   * UNAUTHORIZED, which does not repeat the password.
   */
  async #prove(call: RequestContext, own: Authenticator, currentPassword: string): Promise<void> {
    const { username, passwordHash } = own
    if (own.method !== 'updb' || username === null) {
      throw new Problem('CAN_NOT_UPDATE_AUTHENTICATOR')
    }
    const { throttle, passwords, lockout } = this.#deps
    const { address } = call.credentials
    const reserve = (): Promise<boolean> => lockout.reserve(own, address)
    const isRight = await throttle.attempt(username, address, async () =>
      (await passwords.verify(call, passwordHash, currentPassword, reserve)) ? true : null,
    )
    // Counts the attempt as successful, because the password was correct, even if the change is
    // refused for another reason.
    if (isRight === true) return lockout.prove(own, address)
    const reason = 'currentPassword is not the password of this authenticator'
    throw new Problem('UNAUTHORIZED', { fault: { field: 'currentPassword', reason } })
  }

  #find(id: string, callerId: string): Authenticator | undefined {
    const record = this.#deps.state.get('authenticator', id)
    // @guard objects-of-others--authenticator
    return record?.identityId === callerId ? record : undefined
  }

  #view(record: EntityRecord, callerId: string): JsonObject {
    const detail = this.#deps.state.detail('authenticator', record, callerId)
    const self = { href: `.${path}/${record.id}` }
    return { ...detail, _links: { ...(detail['_links'] as JsonObject), self } }
  }
}

function named(id: string): string {
  return `authenticator with id ${id}`
}
