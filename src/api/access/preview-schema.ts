import type { NamedSchema } from '../../entities/operations.ts'
import { nullableSchema } from '../../entities/nested-schemas.ts'
import {
  arraySchema,
  entityRefSchema,
  booleanSchema,
  textSchema,
  openObjectSchema,
} from '../../entities/response-schemas.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { accessRights } from '../../fsm/access/access-difference.ts'
import { integerSchema } from '../schemas/envelope.ts'
import { objectSchema, type SchemaValue } from '../schemas/typed-schema.ts'
import { previewableActions, previewableKinds } from './previewable-kinds.ts'

export const previewBodyLimits = {
  /** Maximum changes in one preview, equal to the maximum number of writes in one log entry. */
  previewChangesMax: 64,
} as const

const change = openObjectSchema(
  {
    action: { type: 'string', enum: previewableActions },
    kind: { type: 'string', enum: previewableKinds },
    id: { type: 'string', maxLength: 128 },
    data: { type: 'object' },
  },
  ['id', 'data'],
)

/** One change in the body of a preview. */
export type AccessPreviewChange = SchemaValue<typeof change>

export const accessPreviewRequestSchema = objectSchema(
  'accessPreview',
  {
    changes: {
      type: 'array',
      minItems: 1,
      // @guard preview-tells-or-costs--many
      maxItems: previewBodyLimits.previewChangesMax,
      items: change,
    },
  },
  ['changes'],
)

const counts = openObjectSchema({ given: integerSchema, taken: integerSchema })

const record: JsonObject = {
  ...entityRefSchema,
  properties: { ...(entityRefSchema['properties'] as JsonObject), isNew: booleanSchema },
  required: [...(entityRefSchema['required'] as readonly string[]), 'isNew'],
}

/** Response to a preview of access changes. */
export const accessPreviewResponseSchema: NamedSchema = {
  name: 'accessPreviewed',
  schema: openObjectSchema({
    counts: openObjectSchema({
      dial: counts,
      bind: counts,
      router: nullableSchema(counts),
      serviceRouter: nullableSchema(counts),
    }),
    postureChangesCount: integerSchema,
    postureChanges: arraySchema(
      openObjectSchema({
        policy: record,
        given: arraySchema(record),
        taken: arraySchema(record),
        written: arraySchema(record),
      }),
    ),
    rows: arraySchema(
      openObjectSchema({
        right: { type: 'string', enum: accessRights },
        change: { type: 'string', enum: ['given', 'taken'] },
        identity: nullableSchema(record),
        service: nullableSchema(record),
        router: nullableSchema(record),
      }),
    ),
    pagination: openObjectSchema({
      limit: integerSchema,
      offset: integerSchema,
      totalCount: integerSchema,
    }),
    withheld: arraySchema(textSchema),
  }),
}
