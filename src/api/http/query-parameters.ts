import { fieldProblem } from '../../lib/problems.ts'
import type { ListQuery } from '../../ports/state-view.ts'
import type { RequestContext } from './request-context.ts'
import type { ApiLimits } from '../limits.ts'
import type { QueryParameter } from './operation.ts'

const INTEGER = /^[+-]?[0-9]{1,18}$/

const text = { type: 'string' } as const
const integer = { type: 'integer' } as const
const texts = { type: 'array', items: text } as const

const parameters: Readonly<Record<string, QueryParameter>> = {
  limit: { name: 'limit', schema: integer, isRequired: false },
  offset: { name: 'offset', schema: integer, isRequired: false },
  filter: { name: 'filter', schema: text, isRequired: false },
  sort: { name: 'sort', schema: text, isRequired: false },
  roleFilter: { name: 'roleFilter', schema: texts, isRequired: false },
  roleSemantic: { name: 'roleSemantic', schema: text, isRequired: false },
  configTypes: { name: 'configTypes', schema: texts, isRequired: false },
  policyType: {
    name: 'policyType',
    schema: { type: 'string', enum: ['dial', 'bind'] },
    isRequired: false,
  },
}

/** Declarations of the named query parameters. */
export function declareQueryParameters(names: readonly string[]): QueryParameter[] {
  return names.map((name) => parameters[name] ?? { name, schema: text, isRequired: false })
}

export const listQueryParameters = declareQueryParameters(['limit', 'offset', 'filter', 'sort'])

/**
 * Validates the declared parameters against their schemas. For a parameter that is not an array,
 * only the first value is used; undeclared parameters are ignored.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
export function validateQueryParameters(
  call: RequestContext,
  declared: readonly QueryParameter[],
  limits: Pick<ApiLimits, 'queryValuesMax'>,
): void {
  for (const { name, schema, isRequired } of declared) {
    const value = call.first(name)
    if (value === undefined) {
      if (isRequired) throw fieldProblem(name, `${name} in query is required`)
      continue
    }
    if (schema['type'] === 'integer' && !INTEGER.test(value)) {
      throw fieldProblem(
        name,
        `${name} in query must be of type int64: ${JSON.stringify(value)}`,
        value,
      )
    }
    const allowed = schema['enum']
    if (Array.isArray(allowed) && !allowed.includes(value)) {
      throw fieldProblem(name, `${name} in query should be one of [${allowed.join(' ')}]`, value)
    }
    if (call.all(name).length > limits.queryValuesMax) {
      throw fieldProblem(
        name,
        `${name} in query should have at most ${limits.queryValuesMax} values`,
      )
    }
  }
}

/**
 * The list query of a call whose parameters were already checked. The list operation enforces the
 * maximum page size later.
 */
export function readListQuery(call: RequestContext): ListQuery {
  const filter = call.first('filter')
  const sort = call.first('sort')
  const limit = call.first('limit')
  const offset = call.first('offset')
  const roleFilter = call.all('roleFilter').filter((value) => value !== '')
  const roleSemantic = call.first('roleSemantic')
  const policyType = call.first('policyType')
  return {
    ...(filter === undefined ? {} : { filter }),
    ...(sort === undefined ? {} : { sort }),
    ...(limit === undefined ? {} : { limit: Number(limit) }),
    ...(offset === undefined ? {} : { offset: Number(offset) }),
    ...(roleFilter.length === 0 ? {} : { roleFilter }),
    ...(roleSemantic === undefined ? {} : { roleSemantic }),
    ...(policyType === undefined ? {} : { policyType }),
    ...(call.caller?.isAdmin === true ? {} : { isForNonAdmin: true }),
  }
}
