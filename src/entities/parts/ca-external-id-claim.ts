import { openObjectSchema } from '../response-schemas.ts'

const locations = ['COMMON_NAME', 'SAN_URI', 'SAN_EMAIL'] as const
const matchers = ['ALL', 'PREFIX', 'SUFFIX', 'SCHEME'] as const
const parsers = ['NONE', 'SPLIT'] as const

/**
 * Describes where in a client certificate the external id of the identity is. A type alias, not an
 * interface, because only a type alias is assignable to JSON.
 */
export type ExternalIdClaim = {
  readonly index: number
  readonly location: (typeof locations)[number]
  readonly matcher: (typeof matchers)[number]
  readonly matcherCriteria: string
  readonly parser: (typeof parsers)[number]
  readonly parserCriteria: string
}

export const externalIdClaimSchema = openObjectSchema({
  index: { type: 'integer', maximum: 1_000_000 },
  location: { type: 'string', enum: locations },
  matcher: { type: 'string', enum: matchers },
  matcherCriteria: { type: 'string', maxLength: 4096 },
  parser: { type: 'string', enum: parsers },
  parserCriteria: { type: 'string', maxLength: 4096 },
})

/**
 * The value into which a patch is merged if no claim is stored. This value has no location, so the
 * patch must set a location.
 */
export const unsetExternalIdClaim = {
  index: 0,
  location: '',
  matcher: 'ALL',
  matcherCriteria: '',
  parser: 'NONE',
  parserCriteria: '',
} as const
