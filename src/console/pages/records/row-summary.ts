import { visibleText } from '../../app/visible-text.ts'
import { texts } from '../../texts.ts'
import { expiryText } from '../../controls/expiry-input.tsx'
import { type Draft, isObject } from './json-values.ts'
import { policySentence } from './policy-sentence.ts'
import {
  allowedMethods,
  configTypeUse,
  postureRequirement,
  requiredInAddition,
} from './record-cell.tsx'

const summaries: Readonly<Record<string, (row: Draft) => string>> = {
  configs: ({ configType, configValue }) =>
    [configValue, isObject(configType) ? configType['name'] : '']
      .filter((part) => typeof part === 'string' && part !== '')
      .join(' · '),
  'config-types': ({ name }) => configTypeUse(name),
  'posture-checks': postureRequirement,
  'auth-policies': ({ primary, secondary }) => {
    const added = requiredInAddition(secondary)
    return [allowedMethods(primary), added && `${texts.logInRules.secondary}: ${added}`]
      .filter((part) => part !== '')
      .join(' · ')
  },
  // The address of a terminator that an identity hosts is the ID of the terminator.
  terminators: ({ id, host, address }) =>
    isObject(host)
      ? texts.list.hostedBy(String(host['name']))
      : address === id
        ? ''
        : String(address ?? ''),
}

/** Kinds whose summaries are short, so that their rows need room for one line only. */
export const shortSummaries: ReadonlySet<string> = new Set([
  'configs',
  'config-types',
  'terminators',
])

/**
 * The purpose of a record in one line, which a narrow window shows below the name in place of most
 * columns; null for kinds whose list has a column that says enough.
 */
export function rowSummary(path: string, row: Draft): string | null {
  const summary = summaries[path]
  if (summary !== undefined) return visibleText(summary(row))
  if (!path.endsWith('-policies')) return null
  return policySentence(path, row, expiryText(row['expiresAt']))
}
