import { useSignal } from '@preact/signals'

import { texts } from '../texts.ts'
import { Button } from './button.tsx'
import { generatePassword } from './generate-password.ts'

/** An input for the new password of another person, which can be generated and shown. */
export function PasswordInput(props: {
  readonly ids: {
    readonly id: string
    readonly 'aria-describedby': string | undefined
    readonly 'aria-invalid': boolean
  }
  readonly value: string
  readonly onInput: (value: string) => void
}) {
  const { ids, value, onInput } = props
  const isShown = useSignal(false)
  const { password } = texts
  return (
    <div class="password">
      <input
        {...ids}
        class={`input ${isShown.value ? 'mono' : ''}`}
        // A cast, because the input's type is a union of string literals that a variable with two
        // of them does not match.
        type={(isShown.value ? 'text' : 'password') as 'text'}
        autocomplete="new-password"
        spellcheck={false}
        value={value}
        onInput={({ currentTarget }) => onInput(currentTarget.value)}
      />
      <Button isPressed={isShown.value} onClick={() => (isShown.value = !isShown.value)}>
        {password.show}
      </Button>
      <Button
        onClick={() => {
          isShown.value = true
          onInput(generatePassword())
        }}
      >
        {password.generate}
      </Button>
    </div>
  )
}
