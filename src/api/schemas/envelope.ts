import type { NamedSchema } from '../../entities/operations.ts'
import { emptySchema } from '../../entities/schema.ts'
import {
  dateTimeSchema,
  linksSchema,
  textSchema,
  openObjectSchema,
  closedObjectSchema,
  arraySchema,
} from '../../entities/response-schemas.ts'

// Schemas of the envelope of responses, and of the fields that all records have.

export const integerSchema = { type: 'integer' } as const
export const textListSchema = { type: 'array', items: textSchema } as const

export const emptyBodySchema: NamedSchema = { name: 'empty', schema: emptySchema }

export const responseMetaSchema: NamedSchema = {
  name: 'meta',
  schema: closedObjectSchema(
    {
      apiEnrollmentVersion: textSchema,
      apiVersion: textSchema,
      detachedFrom: arraySchema(
        openObjectSchema({
          entity: textSchema,
          field: textSchema,
          ids: textListSchema,
          totalCount: integerSchema,
        }),
      ),
      filterableFields: textListSchema,
      ignoredFields: textListSchema,
      warnings: textListSchema,
      pagination: openObjectSchema({
        limit: integerSchema,
        offset: integerSchema,
        totalCount: integerSchema,
      }),
    },
    ['detachedFrom', 'filterableFields', 'ignoredFields', 'pagination', 'warnings'],
  ),
}

export const errorEnvelopeSchema: NamedSchema = {
  name: 'apiErrorEnvelope',
  schema: closedObjectSchema({
    error: closedObjectSchema(
      {
        code: textSchema,
        message: textSchema,
        requestId: textSchema,
        cause: {
          type: 'object',
          properties: {
            field: textSchema,
            reason: textSchema,
            value: {},
            code: textSchema,
            message: textSchema,
            data: { type: 'object' },
          },
        },
        data: { type: 'object' },
      },
      ['cause', 'data'],
    ),
    meta: responseMetaSchema.schema,
  }),
}

export const baseRecordProperties = {
  _links: linksSchema,
  createdAt: dateTimeSchema,
  id: textSchema,
  tags: { type: 'object' },
  updatedAt: dateTimeSchema,
} as const
export const baseRecordRequired = ['_links', 'createdAt', 'id', 'updatedAt'] as const
