import type { Entity } from '../../entities/define-entity.ts'
import { membersAtLevel } from '../../entities/feature-levels.ts'
import { entityOperations } from '../../entities/operations.ts'
import { findReferencingFields } from '../../entities/referencing-fields.ts'
import { findEntity } from '../../entities/registry.ts'
import type { KindName } from '../../entities/kind-records.ts'
import { isSessionPermission, type SessionPermission } from '../../lib/permissions.ts'
import { fieldProblem, Problem } from '../../lib/problems.ts'
import { newShortId } from '../../lib/random.ts'
import type { PreviewedWrite } from '../../fsm/access/access-difference.ts'
import type { RequestContext } from '../http/request-context.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { ProposalInput } from '../../ports/proposer.ts'
import type { WritePreparers } from '../preparers/write-preparers.ts'
import type { RequestBodyValidator } from '../schemas/request-body-validator.ts'
import type { AccessPreviewChange } from './preview-schema.ts'
import { previewableActionsByKind, type PreviewableAction } from './previewable-kinds.ts'

/** Format of the ids that a caller may choose for records that a preview creates. */
const newId = /^[A-Za-z0-9._-]{1,128}$/

/** A change of one record of any kind. */
interface Change {
  readonly action: PreviewableAction
  readonly kind: KindName
  readonly id: string
  readonly data: JsonObject
}

interface PreparedWrite {
  readonly write: PreviewedWrite
  /** Names of body members that have no effect. */
  readonly ignored: readonly string[]
  /** The records on which the validation of the body depends. */
  readonly judgedOn: NonNullable<ProposalInput['judgedOn']>
}

interface PreviewedWritesDeps {
  readonly preparers: WritePreparers
  readonly level: number
}

/**
 * Validates previewed changes with the code of the real operations, and converts the changes to
 * writes.
 */
export class PreviewedWriteBuilder {
  readonly #validator: RequestBodyValidator
  readonly #checks = new Map<string, (value: unknown) => void>()

  constructor(validator: RequestBodyValidator) {
    this.#validator = validator
  }

  /**
   * Validates the changes in order. Omits the rules that only the state machine checks.
   * @throws {Problem} for a change that the real operation would refuse before it proposes the
   * write. The problem's field, or its detail, contains the index of the change.
   */
  async of(
    deps: PreviewedWritesDeps,
    call: RequestContext,
    changes: readonly AccessPreviewChange[],
  ): Promise<{ readonly writes: readonly PreviewedWrite[]; readonly ignoredFields: string[] }> {
    const writes: PreviewedWrite[] = []
    const ignoredFields = new Set<string>()
    for (const [at, change] of changes.entries()) {
      try {
        const { write, ignored } = await this.#write(deps, call, change)
        writes.push(write)
        for (const name of ignored) ignoredFields.add(`changes.${at}.data.${name}`)
      } catch (error) {
        throw addChangePositionToError(error, at)
      }
    }
    return { writes, ignoredFields: [...ignoredFields] }
  }

  async #write(
    { preparers, level }: PreviewedWritesDeps,
    call: RequestContext,
    { action, kind, id: given = '', data = {} }: AccessPreviewChange,
  ): Promise<{ readonly write: PreviewedWrite; readonly ignored: readonly string[] }> {
    const allowed: readonly PreviewableAction[] = previewableActionsByKind[kind]
    if (!allowed.includes(action)) {
      throw new ChangeFault(
        'action',
        `records of the kind ${kind} can only be previewed with the actions ${allowed.join(', ')}`,
      )
    }
    if (action !== 'create' && given === '') throw new ChangeFault('id', 'id is required')
    if (action === 'create' && given !== '' && !newId.test(given)) {
      throw new ChangeFault('id', 'must be letters, digits, dots, dashes and underscores')
    }
    const id = given === '' ? newShortId() : given
    const { write, ignored } = await this.prepared({ preparers, level }, call, {
      action,
      kind,
      id,
      data,
    })
    return { write, ignored }
  }

  /**
   * Validates one change of any kind in the same way as the operation for that kind, and converts
   * the change to a write.
   * @throws {Problem} in the cases in which that operation refuses a body before it proposes the
   * write.
   */
  async prepared(
    { preparers, level }: PreviewedWritesDeps,
    call: RequestContext,
    { action, kind, id, data }: Change,
  ): Promise<PreparedWrite> {
    const entity = findEntity(kind)
    const base = { mode: action, entity: kind, id } as const
    if (action === 'delete') return { write: { ...base, fields: {} }, ignored: [], judgedOn: [] }
    this.#checkOf(entity, action)(data)
    // A preview creates no enrollment token, because an enrollment grants no access.
    const { enrollment: _, ...body } = data
    const { known, later } = membersAtLevel(entity, kind === 'identity' ? body : data, level)
    const plan = await preparers.of(entity)(call, action, known, id)
    const { known: fields } = membersAtLevel(entity, plan.fields, level)
    const { judgedOn = [] } = plan
    return { write: { ...base, fields }, ignored: [...plan.ignoredFields, ...later], judgedOn }
  }

  #checkOf(entity: Entity, action: Exclude<PreviewableAction, 'delete'>): (value: unknown) => void {
    const key = `${action} ${entity.name}`
    let check = this.#checks.get(key)
    if (check === undefined) {
      const operation = entityOperations(entity).find(
        ({ api, shape }) => api === 'management' && shape === action,
      )
      check = this.#validator.checkOf(operation?.request?.schema ?? {})
      this.#checks.set(key, check)
    }
    return check
  }
}

/** A fault of a requested change itself, such as its action or id, not of the record's data. */
class ChangeFault extends Error {
  readonly field: string

  constructor(field: string, reason: string) {
    super(reason)
    this.field = field
  }
}

/**
 * Adds the position of the change to the field (or, without a field, to the detail) of the error.
 */
export function addChangePositionToError(error: unknown, at: number): unknown {
  if (error instanceof ChangeFault) {
    return fieldProblem(`changes.${at}.${error.field}`, error.message)
  }
  if (!(error instanceof Problem)) return error
  const { code, fault, detail } = error
  if (fault === null)
    return new Problem(code, { detail: `changes.${at}: ${detail ?? error.message}` })
  const inData = fault.field === 'body' ? 'data' : `data.${fault.field}`
  const field = fault.field === 'id' ? 'id' : inData
  return new Problem(code, { fault: { ...fault, field: `changes.${at}.${field}` } })
}

/**
 * Permissions that a preview of a change to a kind requires: to read the kind, the kinds that its
 * records reference, and the kinds that select its records by roles or prevent their deletion.
 * Errors and results of the preview reveal all of these records.
 */
export function permissionsForPreview(kind: KindName): readonly SessionPermission[] {
  const entity = findEntity(kind)
  const named = Object.values(entity.fields).flatMap(({ reference }) =>
    reference === null ? [] : [reference.to],
  )
  const policies = findReferencingFields(entity)
    .filter(({ field, onDelete }) => field.kind === 'roleList' || onDelete === 'refuse')
    .map((referrer) => referrer.entity.name)
  const permissions = [kind, ...named, ...policies].flatMap(
    (one) => listPermissionForKind(one) ?? [],
  )
  return [...new Set(permissions)]
}

/**
 * Permission to list a kind on the management API. Null: any session may read the kind. `admin` if
 * the management API has no such list.
 */
export function listPermissionForKind(kind: KindName): SessionPermission | null {
  const list = entityOperations(findEntity(kind)).find(
    ({ api, shape }) => api === 'management' && shape === 'list',
  )
  const permission = list?.permission
  if (!isSessionPermission(permission)) return 'admin'
  return permission === 'session' || permission === 'partial' ? null : permission
}
