import { visibleText } from '../../app/visible-text.ts'
import { expiryText } from '../../controls/expiry-input.tsx'
import { type Draft, isObject } from './json-values.ts'
import { policySentence } from './policy-sentence.ts'
import { configTypeUse, postureRequirement } from './record-cell.tsx'

const summaries: Readonly<Record<string, (row: Draft) => string>> = {
  configs: ({ configType, configValue }) =>
    [configValue, isObject(configType) ? configType['name'] : '']
      .filter((part) => typeof part === 'string' && part !== '')
      .join(' · '),
  'config-types': ({ name }) => configTypeUse(name),
  'posture-checks': postureRequirement,
}

/** Kinds whose summaries are short, so that their rows need room for one line only. */
export const shortSummaries: ReadonlySet<string> = new Set(['configs', 'config-types'])

/**
 * The purpose of a record in one line, which a narrow window shows below the name in place of the
 * columns; null for kinds whose list has a column that says enough.
 */
export function rowSummary(path: string, row: Draft): string | null {
  const summary = summaries[path]
  if (summary !== undefined) return visibleText(summary(row))
  if (!path.endsWith('-policies') || path === 'auth-policies') return null
  return policySentence(path, row, expiryText(row['expiresAt']))
}
