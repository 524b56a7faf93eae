import { reportLimits } from './limits.ts'
import type { InspectionResponse } from '../../channel/messages/reports.ts'
import { errorMessage } from '../../lib/error-code.ts'

/** Inspectable values: names and functions that create the values. */
type Inspectable = Readonly<Record<string, () => unknown>>

/**
 * Inspects values; each is JSON text. An unknown name has no value, as in routers of OpenZiti. A
 * value whose function throws becomes an error and does not affect the others.
 */
export function inspectRouter(
  names: readonly string[],
  inspectable: Inspectable,
): InspectionResponse {
  const errors: string[] = []
  const values: { name: string; value: string }[] = []
  const { inspectedValuesMax, inspectedCharactersMax } = reportLimits
  for (const name of [...new Set(names)].slice(0, inspectedValuesMax)) {
    const make = Object.hasOwn(inspectable, name) ? inspectable[name] : undefined
    if (make === undefined) continue
    try {
      const value = JSON.stringify(make() ?? null)
      if (value.length <= inspectedCharactersMax) values.push({ name, value })
      else errors.push(`${name}: longer than ${inspectedCharactersMax} characters`)
    } catch (error) {
      errors.push(`${name}: ${errorMessage(error)}`)
    }
  }
  if (new Set(names).size > inspectedValuesMax) {
    errors.push(`more than ${inspectedValuesMax} values asked for at a time`)
  }
  return { errors, values }
}
